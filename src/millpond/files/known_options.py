"""Which options a read of files may have, by reader and format, spelt as their documents do.

What an option means is said where it is used; a format's own options are read by the format.
"""

from __future__ import annotations

from collections.abc import Mapping

from millpond.options import CHECKPOINT_LOCATION

# Formats whose files are in an encoding, and may be compressed.
TEXT_FORMATS = frozenset({"csv", "json", "text", "xml"})
FORMATS = ("csv", "json", "parquet", "avro", "text", "binaryfile", "xml")
# What a format is called elsewhere.
FORMAT_ALIASES = {"binary_file": "binaryfile", "com.databricks.spark.xml": "xml"}
# Endings that tell a format, after the one of a compression is taken off.
ENDINGS = {
    "csv": "csv",
    "tsv": "csv",
    "json": "json",
    "jsonl": "json",
    "ndjson": "json",
    "parquet": "parquet",
    "avro": "avro",
    "txt": "text",
    "xml": "xml",
}

# Every reader of files has these.
GENERIC = (
    "path",
    "mode",
    "pathGlobFilter",
    "recursiveFileLookup",
    "modifiedAfter",
    "modifiedBefore",
    "ignoreMissingFiles",
    "ignoreCorruptFiles",
    "rescuedDataColumn",
    "readerCaseSensitive",
    "columnNameOfCorruptRecord",
    "timeZone",
    "maxFilesPerTrigger",
    "maxBytesPerTrigger",
    "maxFileAge",
)
SPARK_ONLY = (
    "basePath",
    "cleanSource",
    "sourceArchiveDir",
    "latestFirst",
    "fileNameOnly",
    "maxCachedFiles",
    "discardCachedInputRatio",
)
# With the prefix `cloudFiles.`, which read_files does without.
AUTO_LOADER = (
    "format",
    "allowOverwrites",
    "cleanSource",
    "cleanSource.retentionDuration",
    "cleanSource.moveDestination",
    "includeExistingFiles",
    "inferColumnTypes",
    "maxBytesPerTrigger",
    "maxFileAge",
    "maxFilesPerTrigger",
    "partitionColumns",
    "schemaEvolutionMode",
    "schemaHints",
    "schemaLocation",
    "useStrictGlobber",
    "validateOptions",
    # From here on they say how files are found, not which: nothing is lost by doing without
    # them, so they are passed over, except those that are refused below.
    "backfillInterval",
    "useIncrementalListing",
    "useNotifications",
    "useManagedFileEvents",
    "listOnStart",
    "fetchParallelism",
    "pathRewrites",
    "resourceTag",
    "queueUrl",
    "queueName",
    "subscription",
    "region",
    "awsAccessKey",
    "awsSecretKey",
    "roleArn",
    "roleExternalId",
    "roleSessionName",
    "stsEndpoint",
    "resourceGroup",
    "subscriptionId",
    "clientId",
    "clientSecret",
    "connectionString",
    "tenantId",
    "projectId",
    "client",
    "clientEmail",
    "privateKey",
    "privateKeyId",
)
# Without the prefix, in both spellings.
AUTO_LOADER_GENERIC = ("fileNamePattern", "singleVariantColumn", "databricks.serviceCredential")

_CREDENTIALS = (
    "put the credentials of the store into the environment, such as AWS_ACCESS_KEY_ID and "
    "AWS_SECRET_ACCESS_KEY"
)
REFUSED: Mapping[str, str] = {
    **CHECKPOINT_LOCATION,
    "pathRewrites": "name the place that can be read in the path itself",
    "singleVariantColumn": "give a schema or let it be inferred, and leave the option out",
    "databricks.serviceCredential": _CREDENTIALS,
    "awsAccessKey": _CREDENTIALS,
    "awsSecretKey": _CREDENTIALS,
    "roleArn": _CREDENTIALS,
    "roleExternalId": _CREDENTIALS,
    "roleSessionName": _CREDENTIALS,
    "stsEndpoint": _CREDENTIALS,
    "clientId": _CREDENTIALS,
    "clientSecret": _CREDENTIALS,
    "connectionString": _CREDENTIALS,
    "tenantId": _CREDENTIALS,
    "client": _CREDENTIALS,
    "clientEmail": _CREDENTIALS,
    "privateKey": _CREDENTIALS,
    "privateKeyId": _CREDENTIALS,
}

_TIMES = (
    "dateFormat",
    "timestampFormat",
    "timestampNTZFormat",
    "timeFormat",
    "locale",
    "enableDateTimeParsingFallback",
)
_TEXT = ("encoding", "charset", "lineSep", "compression", "codec")
_SAMPLED = ("inferSchema", "samplingRatio", "mergeSchema", "multiLine", "preferDate")
# Those of writers are among them: they are no mistake in a reader, which passes over them.
OF_FORMAT: Mapping[str, tuple[str, ...]] = {
    "csv": (
        *_TEXT,
        *_TIMES,
        *_SAMPLED,
        "sep",
        "delimiter",
        "header",
        "quote",
        "quoteAll",
        "escape",
        "escapeQuotes",
        "charToEscapeQuoteEscaping",
        "unescapedQuoteHandling",
        "comment",
        "skipRows",
        "enforceSchema",
        "ignoreLeadingWhiteSpace",
        "ignoreTrailingWhiteSpace",
        "nullValue",
        "nanValue",
        "emptyValue",
        "positiveInf",
        "negativeInf",
        "maxColumns",
        "maxCharsPerColumn",
        "inputBufferSize",
        "columnPruning",
        "parserLib",
        "extension",
    ),
    "json": (
        *_TEXT,
        *_TIMES,
        *_SAMPLED,
        "primitivesAsString",
        "prefersDecimal",
        "inferTimestamp",
        "dropFieldIfAllNull",
        "allowComments",
        "allowUnquotedFieldNames",
        "allowSingleQuotes",
        "allowNumericLeadingZeros",
        "allowNonNumericNumbers",
        "allowBackslashEscapingAnyCharacter",
        "allowUnquotedControlChars",
        "ignoreNullFields",
        "pretty",
        "sortKeys",
        "writeNonAsciiCharacterAsCodePoint",
        "useUnsafeRow",
    ),
    "xml": (
        *_TEXT,
        *_TIMES,
        *_SAMPLED,
        "rowTag",
        "rootTag",
        "declaration",
        "arrayElementName",
        "excludeAttribute",
        "attributePrefix",
        "valueTag",
        "nullValue",
        "ignoreSurroundingSpaces",
        "ignoreNamespace",
        "rowValidationXSDPath",
        "wildcardColName",
        "prefersDecimal",
        "validateName",
        "indent",
        "useLegacyXMLParser",
    ),
    "parquet": ("mergeSchema", "compression", "datetimeRebaseMode", "int96RebaseMode"),
    "avro": (
        "avroSchema",
        "avroSchemaUrl",
        "mergeSchema",
        "ignoreExtension",
        "positionalFieldMatching",
        "datetimeRebaseMode",
        "enableStableIdentifiersForUnionType",
        "stableIdentifierPrefixForUnionType",
        "recursiveFieldMaxDepth",
        "recordName",
        "recordNamespace",
        "compression",
    ),
    "text": ("wholetext", "encoding", "charset", "lineSep", "compression"),
    "binaryfile": (),
}
# Hadoop's settings of its client for S3 that a read may carry.
STORE_PREFIX = "fs.s3a."
OF_STORE = (
    "fs.s3a.access.key",
    "fs.s3a.secret.key",
    "fs.s3a.session.token",
    "fs.s3a.endpoint",
    "fs.s3a.endpoint.region",
    "fs.s3a.path.style.access",
    "fs.s3a.connection.ssl.enabled",
)
