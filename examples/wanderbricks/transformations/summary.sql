-- What the marketplace looks like now, computed anew from the tables above.
CREATE OR REFRESH MATERIALIZED VIEW booking_summary
COMMENT 'Bookings and their payments by status'
AS SELECT
  bookings.status,
  count(*) AS bookings,
  count(payments.payment_id) AS with_payment,
  count_if(payments.status = 'completed') AS paid,
  CAST(sum(CASE WHEN payments.status = 'completed' THEN payments.amount END) AS DECIMAL(18, 2))
    AS paid_amount
FROM current_bookings AS bookings
LEFT JOIN payments_by_booking AS payments USING (booking_id)
GROUP BY bookings.status;

-- How many payments the key payment_id has cost.
CREATE OR REFRESH MATERIALIZED VIEW payments_lost
COMMENT 'Payments of the source, those that payments_by_id still has, and the difference'
AS SELECT source.payments, kept.payments AS kept, source.payments - kept.payments AS lost
FROM (SELECT count(*) AS payments FROM samples.wanderbricks.payments) AS source
CROSS JOIN (SELECT count(*) AS payments FROM payments_by_id) AS kept;
