-- The newest version of every booking, table and flow in one statement.
--
-- booking_updates holds a full record for each change of a booking. The sequence is
-- booking_update_id and not updated_at: several changes of a booking can carry the same time, and
-- rows with equal sequences are all kept.
CREATE OR REFRESH STREAMING TABLE current_bookings (
  CONSTRAINT real_amount EXPECT (total_amount >= 75) ON VIOLATION DROP ROW,
  CONSTRAINT short_stay EXPECT (datediff(check_out, check_in) <= 13)
)
COMMENT 'The newest version of every booking that has changed'
FLOW REPLACE USING (booking_id) SEQUENCE BY booking_update_id BY NAME
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
FROM STREAM samples.wanderbricks.booking_updates;
