"""What tests share: readers of vectors, drivers with a virtual clock, wires that can be cut."""
