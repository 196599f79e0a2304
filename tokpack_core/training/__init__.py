"""What trainers read: packs, their masks, labels and positions; torch comes with `pip install tokpack[train]`."""
