"""The two ways to key payments, in Python. `payments.sql` tells them apart."""

from pyspark import pipelines as dp


@dp.table(replace_using=["payment_id"], sequence_by="payment_date")
def payments_by_id_py():
    return spark.readStream.table("samples.wanderbricks.payments")


dp.create_streaming_table("payments_by_booking_py", expect_all_or_drop={"has_amount": "amount > 0"})


@dp.replace_flow(
    target="payments_by_booking_py", replace_using=["booking_id"], sequence_by="payment_date"
)
def newest_payment_of_booking():
    payments = spark.readStream.table("samples.wanderbricks.payments")
    return payments.select(
        "booking_id", "payment_id", "amount", "payment_method", "status", "payment_date"
    )
