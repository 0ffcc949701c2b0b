"""What a command starts: started, followed, bounded and ended."""
