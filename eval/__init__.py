"""Evaluation: the episode loop, scripted policies and backends, records, metrics, reports. Import its modules by name."""
