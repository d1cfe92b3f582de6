-- Two ways to key payments. Only one of them keeps every payment.

-- By payment_id, sequenced by payment_date. It reads well, but payment_id is not unique in this
-- data: some values come back later for another booking. To REPLACE USING that is a newer version
-- of the same key, so the older payment, although another one, is gone from the target.
CREATE OR REFRESH STREAMING TABLE payments_by_id
COMMENT 'The newest payment of each payment_id; loses payments whose id was used again'
FLOW REPLACE USING (payment_id) SEQUENCE BY payment_date BY NAME
SELECT payment_id, booking_id, amount, payment_method, status, payment_date
FROM STREAM samples.wanderbricks.payments;

-- By booking_id, sequenced by payment_date: how the payment of each booking stands now. A failed
-- attempt goes when the next attempt comes in, and a refund replaces the payment.
CREATE OR REFRESH STREAMING TABLE payments_by_booking (
  CONSTRAINT has_amount EXPECT (amount > 0) ON VIOLATION DROP ROW
)
COMMENT 'The newest payment of each booking'
FLOW REPLACE USING (booking_id) SEQUENCE BY payment_date BY NAME
SELECT booking_id, payment_id, amount, payment_method, status, payment_date
FROM STREAM samples.wanderbricks.payments;
