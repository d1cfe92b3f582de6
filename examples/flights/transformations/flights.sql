-- Every delivery holds all flights of some days. A day that is delivered again replaces the day as
-- it was, whatever its number of flights; a delivery that is older than what the table has of a day
-- changes nothing.
CREATE OR REFRESH STREAMING TABLE flights (
  CONSTRAINT from_new_york EXPECT (origin IN ('EWR', 'JFK', 'LGA')) ON VIOLATION DROP ROW,
  CONSTRAINT has_landed EXPECT (arr_time IS NOT NULL)
)
COMMENT 'All flights from New York in 2013, each day as last delivered'
FLOW REPLACE USING (year, month, day) SEQUENCE BY sent_at BY NAME
SELECT * FROM STREAM delta.`landing/flights`;
