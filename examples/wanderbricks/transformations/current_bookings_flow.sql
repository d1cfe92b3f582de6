-- The same table with its flow apart from it. Note that BY NAME comes before REPLACE USING here.
CREATE OR REFRESH STREAMING TABLE current_bookings_flow (
  CONSTRAINT real_amount EXPECT (total_amount >= 75) ON VIOLATION DROP ROW,
  CONSTRAINT short_stay EXPECT (datediff(check_out, check_in) <= 13)
);

CREATE FLOW booking_changes
COMMENT 'Replaces each booking by its newest version'
AS INSERT INTO current_bookings_flow
BY NAME
REPLACE USING (booking_id) SEQUENCE BY booking_update_id
SELECT
  booking_id,
  booking_update_id,
  user_id,
  property_id,
  check_in,
  check_out,
  guests_count,
  total_amount,
  status,
  updated_at
FROM STREAM(samples.wanderbricks.booking_updates);
