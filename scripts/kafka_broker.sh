#!/bin/sh
# Fetch the broker of Kafka that the tests start into .build/kafka, unless it is there.
# Needs Maven, which brings Java on Debian. Every file must have the checksum that is on record.
set -eu
cd "$(dirname "$0")/.."
sums=$PWD/scripts/kafka/SHA256SUMS
target=$PWD/.build/kafka
plugin=org.apache.maven.plugins:maven-dependency-plugin:3.8.1

if [ -f "$target/.ready" ] && cmp -s "$sums" "$target/.ready"; then
  exit 0
fi
if ! command -v mvn >/dev/null 2>&1; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "Installing Maven and Java, which the tests of Kafka need"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends maven >/dev/null
  else
    echo "The tests of Kafka need Maven and Java 17 or newer: install the package maven." >&2
    exit 1
  fi
fi
echo "Fetching the broker of Kafka into .build/kafka"
rm -rf "$target"
mkdir -p "$target/jars"
mvn --quiet --batch-mode -Dstyle.color=never --strict-checksums --file scripts/kafka/pom.xml \
  "$plugin:copy-dependencies" -DincludeScope=runtime -DoutputDirectory="$target/jars"
cd "$target/jars"
if command -v sha256sum >/dev/null 2>&1; then
  sha256sum --quiet --strict --check "$sums"
else
  shasum -a 256 --quiet --strict --check "$sums"
fi
if [ "$(find . -name '*.jar' | wc -l)" -ne "$(wc -l <"$sums")" ]; then
  echo "Maven brought files that scripts/kafka/SHA256SUMS does not name." >&2
  exit 1
fi
cp "$sums" "$target/.ready"
