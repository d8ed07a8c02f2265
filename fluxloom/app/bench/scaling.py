"""tmp"""
class ScalingBench:
    title="x"
