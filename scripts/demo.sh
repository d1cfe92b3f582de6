#!/bin/sh
# Runs the Wanderbricks example. The first run fills its tables; every further run lets a week pass,
# updates the tables, and shows that only the keys with newer events have changed.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
bin=${MILLPOND_BIN:-$root/.venv/bin}
cd "$root/examples/wanderbricks"

storage=pipeline-storage
source=$storage/samples/wanderbricks/bookings-2000/booking_updates
table=$storage/tables/main/travel/current_bookings

newest_version() {
  "$bin/python" -c 'import sys; from deltalake import DeltaTable; print(DeltaTable(sys.argv[1]).version())' "$1"
}

show() {
  printf '\n$ millpond'
  for word in "$@"; do
    case $word in
      *' '*) printf ' "%s"' "$word" ;;
      *) printf ' %s' "$word" ;;
    esac
  done
  printf '\n'
  "$bin/millpond" "$@"
}

# How many slices of the samples the tables hold; written only when an update has gone well.
progress=$storage/demo-slices
weeks=$(cat "$progress" 2>/dev/null || echo 0)
slice=$((weeks + 1))

if [ "$weeks" -gt 0 ]; then
  table_before=$(newest_version "$table")
  echo "A week goes by: week $weeks of changes comes in."
else
  echo "The first update: everything that the samples hold."
fi

show run --conf "millpond.samples.slices=$slice"
echo "$slice" > "$progress"
show tables
show query "SELECT booking_id, booking_update_id, check_in, status, total_amount \
FROM current_bookings ORDER BY updated_at DESC LIMIT 5"
show query "SELECT * FROM booking_summary ORDER BY status"
show query "SELECT * FROM payments_lost"

if [ "$weeks" -gt 0 ]; then
  printf '\nWhat the update did to current_bookings, seen with delta-rs and DuckDB:\n'
  "$bin/python" what_changed.py \
    --table "$table" --before "$table_before" --after "$(newest_version "$table")" \
    --source "$source" --read-after $((weeks - 1)) \
    --key booking_id --sequence booking_update_id
else
  printf '\nRun it again to see what a week of changes does to the tables.\n'
fi
