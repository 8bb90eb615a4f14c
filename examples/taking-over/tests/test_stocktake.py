from stocktake import report


def test_the_report_counts_all_pieces() -> None:
    assert report({"bolts": 40, "nuts": 2}).endswith("42 items in all.")
