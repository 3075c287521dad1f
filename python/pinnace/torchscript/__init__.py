"""TorchScript on its way to torch.export: read, checked, opened under limits, and run step by step."""
