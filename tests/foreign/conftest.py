"""The fixture `folder`: a pipeline folder to write source files to, feed and run."""

from tests.pipeline_folder import folder

__all__ = ["folder"]
