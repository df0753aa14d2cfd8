"""What mqclient costs: native against pure against the floor, in ratios that hold on every machine."""
