"""The columns of every sample table: names, order and Spark types, as a Delta reader sees them."""

from pathlib import Path

import pytest
from deltalake import DeltaTable

from millpond.samples import locate
from millpond.samples.wanderbricks.tables import TABLES
from millpond.storage import Layout

# Delta's names: long is Spark's bigint, integer its int.
COLUMNS = {
    "bookings": "booking_id long, user_id long, property_id long, check_in date, check_out date, "
    "guests_count integer, total_amount float, status string, created_at timestamp, "
    "updated_at timestamp",
    "booking_updates": "booking_id long, booking_update_id long, check_in date, check_out date, "
    "created_at timestamp, guests_count integer, property_id long, status string, "
    "total_amount float, updated_at timestamp, user_id long",
    "payments": "payment_id long, booking_id long, amount decimal(15,4), payment_method string, "
    "status string, payment_date timestamp",
    "properties": "property_id long, host_id long, destination_id long, title string, "
    "description string, base_price float, property_type string, max_guests integer, "
    "bedrooms integer, bathrooms integer, property_latitude float, property_longitude float, "
    "created_at date",
    "users": "user_id long, email string, name string, country string, user_type string, "
    "created_at timestamp, is_business boolean, company_name string",
    "hosts": "host_id long, name string, email string, phone string, is_verified boolean, "
    "is_active boolean, rating float, country string, joined_at date",
    "reviews": "booking_id long, comment string, created_at timestamp, is_deleted boolean, "
    "property_id long, rating double, review_id long, updated_at timestamp, user_id long",
    "destinations": "destination_id long, destination string, country string, "
    "state_or_province string, state_or_province_code string, description string",
    "countries": "country string, country_code string, continent string",
    "amenities": "amenity_id long, name string, category string, icon string",
    "property_amenities": "property_id long, amenity_id long",
    "property_images": "image_id long, property_id long, url string, sequence integer, "
    "is_primary boolean, uploaded_at date",
    "employees": "employee_id long, host_id long, name string, role string, email string, "
    "phone string, country string, joined_at date, end_service_date date, "
    "is_currently_employed boolean",
    "page_views": "device_type string, page_url string, property_id long, referrer string, "
    "timestamp timestamp, user_id long, view_id long",
    "clickstream": "event string, metadata struct<device string, referrer string>, "
    "property_id long, timestamp timestamp, user_id long",
    "customer_support_logs": "created_at string, messages array<struct<message string, "
    "sender string, sentiment string, timestamp string>>, support_agent_id string, "
    "ticket_id string, user_id long",
}


def type_text(delta_type) -> str:
    match delta_type.type:
        case "struct":
            inner = ", ".join(f"{f.name} {type_text(f.type)}" for f in delta_type.fields)
            return f"struct<{inner}>"
        case "array":
            return f"array<{type_text(delta_type.element_type)}>"
    return delta_type.type


@pytest.mark.parametrize("table", TABLES)
def test_columns(table: str, tmp_path: Path) -> None:
    folder = locate(
        ("samples", "wanderbricks", table),
        layout=Layout(tmp_path),
        configuration={"millpond.samples.scale": "0.05"},
    )
    assert folder is not None
    fields = DeltaTable(folder).schema().fields
    assert ", ".join(f"{f.name} {type_text(f.type)}" for f in fields) == COLUMNS[table]
    assert all(field.nullable for field in fields)


def test_every_table_is_listed() -> None:
    assert sorted(COLUMNS) == sorted(TABLES)
