"""Schedules from elsewhere: which node each rank is, and when messages go along which links."""
