"""The names of the tables of `samples.wanderbricks`, apart from what makes their rows."""

TABLES = (
    "amenities",
    "booking_updates",
    "bookings",
    "clickstream",
    "countries",
    "customer_support_logs",
    "destinations",
    "employees",
    "hosts",
    "page_views",
    "payments",
    "properties",
    "property_amenities",
    "property_images",
    "reviews",
    "users",
)

# The others hold the base alone, whatever the slice.
GROWING_TABLES = ("booking_updates", "payments")
