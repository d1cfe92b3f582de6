"""A project folder: its spec, its source files, and what they define."""

from millpond.project.loading import load_pipeline
from millpond.project.new_project import init_project
from millpond.project.spec import Library, Spec, find_spec, load_configuration, load_spec

__all__ = [
    "Library",
    "Spec",
    "find_spec",
    "init_project",
    "load_configuration",
    "load_pipeline",
    "load_spec",
]
