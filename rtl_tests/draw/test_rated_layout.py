"""Pictures of networks with rates: those of the whole network, with stubs for parallel links."""

import numpy as np
import pytest

import torusfabric as tf
from torusfabric.draw import draw
from torusfabric.draw.graph_layout import layout_of


@pytest.mark.parametrize("name", ["4x4%0:2", "4x4%0:2,1:1/2", "cube:3%2", "mesh:3x4%2!0:+0"])
def test_parallel_links_are_stubs_beside_the_line_of_the_first(name):
    network = tf.parse_topology(name)
    layout, whole = layout_of(network), layout_of(tf.parse_topology(name.partition("%")[0]))
    assert np.array_equal(layout.positions, whole.positions)
    first = [port for port, text in enumerate(network.port_names) if "." not in text]
    others = [port for port in range(network.ports) if port not in first]
    assert np.array_equal(layout.steps[:, :, first], whole.steps)
    assert not layout.is_line[:, others].any()
    assert draw(tf.plan(network, "broadcast")).startswith("<svg")
