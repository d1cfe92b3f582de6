"""The newest version of every booking, in Python: as a table's own flow, and as a flow apart."""

from pyspark import pipelines as dp

COLUMNS = (
    "booking_id",
    "booking_update_id",
    "user_id",
    "property_id",
    "check_in",
    "check_out",
    "guests_count",
    "total_amount",
    "status",
    "updated_at",
)


@dp.table(
    comment="The newest version of every booking that has changed",
    replace_using=["booking_id"],
    sequence_by="booking_update_id",
)
@dp.expect_or_drop("real_amount", "total_amount >= 75")
@dp.expect("short_stay", "datediff(check_out, check_in) <= 13")
def current_bookings_py():
    return spark.readStream.table("samples.wanderbricks.booking_updates").select(*COLUMNS)


dp.create_streaming_table(
    "current_bookings_flow_py",
    expect_all_or_drop={"real_amount": "total_amount >= 75"},
    expect_all={"short_stay": "datediff(check_out, check_in) <= 13"},
)


@dp.replace_flow(
    target="current_bookings_flow_py",
    replace_using=["booking_id"],
    sequence_by="booking_update_id",
    comment="Replaces each booking by its newest version",
)
def booking_changes_py():
    return spark.readStream.table("samples.wanderbricks.booking_updates").select(*COLUMNS)
