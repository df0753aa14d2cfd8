"""Mechanism that every protocol has and none owns: links, slots, timers, queues; no word of any protocol."""
