"""What trainers read: packs, their masks, labels and positions. torch is an optional extra: `pip install tokpack[train]`."""
