"""Names of functions that do more than look at one row, in lower case."""

from __future__ import annotations

from collections.abc import Collection

from millpond.engine.shapes.operator import OperatorKind
from millpond.sql.tokens import keywords

AGGREGATES = keywords(
    """
    any any_value approx_count_distinct approx_percentile approx_top_k approx_top_k_accumulate
    approx_top_k_combine array_agg avg bit_and bit_or bit_xor bitmap_and_agg bitmap_construct_agg
    bitmap_or_agg bool_and bool_or collect_list collect_set corr count count_distinct count_if
    count_min_sketch covar_pop covar_samp every first first_value grouping grouping_id
    histogram_numeric hll_sketch_agg hll_union_agg kll_merge_agg_bigint kll_merge_agg_double
    kll_merge_agg_float kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float kurtosis
    last last_value listagg listagg_distinct max max_by mean measure median min min_by mode
    percentile percentile_approx percentile_cont percentile_disc product regr_avgx regr_avgy
    regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy schema_of_json_agg
    schema_of_variant_agg skewness some std stddev stddev_pop stddev_samp string_agg
    string_agg_distinct sum sum_distinct theta_intersection_agg theta_sketch_agg theta_union_agg
    try_avg try_sum tuple_intersection_agg_double tuple_intersection_agg_integer
    tuple_sketch_agg_double tuple_sketch_agg_integer tuple_union_agg_double
    tuple_union_agg_integer var_pop var_samp variance vector_avg vector_sum
    """
)
WINDOW_FUNCTIONS = keywords(
    "cume_dist dense_rank lag lead nth_value ntile percent_rank rank row_number"
)
_OTHERS = {
    **dict.fromkeys(("window", "session_window", "window_time"), OperatorKind.TIME_WINDOW),
    "monotonically_increasing_id": OperatorKind.ROW_NUMBERING,
}
GENERATORS = keywords(
    """
    explode explode_outer posexplode posexplode_outer inline inline_outer stack json_tuple
    variant_explode variant_explode_outer
    """
)


def kind_of_function(name: str, aggregates: Collection[str] = ()) -> OperatorKind | None:
    """The kind of operator that calling a function makes, or `None` for one on a single row.

    Args:
        aggregates: The user's own aggregate functions, in lower case.
    """
    folded = name.lower()
    if folded in AGGREGATES or folded in aggregates:
        return OperatorKind.AGGREGATION
    if folded in WINDOW_FUNCTIONS:
        return OperatorKind.WINDOW_FUNCTION
    return _OTHERS.get(folded)
