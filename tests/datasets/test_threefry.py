"""The generator against published known answers and against numbers drawn once with JAX 0.10.2.

JAX ran with ``jax_enable_x64`` on and ``jax_threefry_partitionable`` off.
"""

import numpy as np
import pytest

from dpmc.common import threefry


@pytest.mark.parametrize(
    ("key", "counter", "expected"),
    [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_hash_equals_known_answers_of_salmon_et_al(key, counter, expected):
    first, second = (np.array([word], dtype=np.uint32) for word in counter)
    hashed = threefry.threefry_2x32(np.array(key, dtype=np.uint32), first, second)
    assert tuple(int(words[0]) for words in hashed) == expected
    assert (int(first[0]), int(second[0])) == counter  # the arguments are left as they were


def test_split_equals_jax():
    expected = [[2319829394, 3089276917], [3504182308, 1661392343], [891081558, 2782819260]]
    assert threefry.split(threefry.key_of_seed(43247), 3).tolist() == expected
    ten = threefry.split(threefry.key_of_seed(4623878), 10)
    assert ten.dtype == np.uint32
    assert ten[[0, 1, 9]].tolist() == [
        [1899951768, 4048580881],
        [754537685, 392609544],
        [1722343494, 3729360280],
    ]


def test_uniform_equals_jax_bit_for_bit():
    key = threefry.key_of_seed(7)
    expected = [
        [0.6256372034140367, 0.11167290691110354, 0.17175613902846187],
        [0.2646982744947348, 0.47742110773549773, 0.9380420542407772],
    ]
    assert threefry.uniform(key, (2, 3)).tolist() == expected


@pytest.mark.parametrize(
    ("seed", "expected"),
    [
        (4236482, [-0.2847615545887134, -0.9238093265384073]),
        (2**40 + 5, [-1.4481247890102231]),
        (
            4236501,
            [
                0.8039779502230515,
                -0.5557955453051008,
                -0.46498086857172793,
                -0.9316805635772711,
                0.7727138715196736,
                -0.8003425354152638,
                0.5192891372139474,
                -0.6953563387382223,
                0.21681149936177957,
                1.4435480941594971,
            ],
        ),
    ],
)
def test_normal_equals_jax(seed, expected):
    drawn = threefry.normal(threefry.key_of_seed(seed), (len(expected),))
    np.testing.assert_allclose(drawn, expected, rtol=0, atol=1e-14)


@pytest.fixture(scope="module")
def large():
    """As many normals as the largest published data set has: 200,000 rows of 30."""
    return threefry.normal(threefry.key_of_seed(11), (200000, 30))


def test_a_large_normal_equals_jax(large):
    drawn = [large[0, 0], large[123456, 7], large[-1, -1]]
    expected = [-0.3316832893752129, -0.16212623764642806, -0.7411366633284281]
    np.testing.assert_allclose(drawn, expected, rtol=0, atol=1e-14)
    assert large.sum() == pytest.approx(-722.7254874120118, abs=1e-8)
    # The tails, to JAX's own accuracy there.
    assert (large.argmin(), large.argmax()) == (117726 * 30 + 16, 171267 * 30 + 24)
    assert large.min() == pytest.approx(-4.973079708174198, abs=2e-11)
    assert large.max() == pytest.approx(5.167009416623432, abs=2e-11)


def test_multivariate_normal_equals_jax():
    covariance = [[1, 0.999], [0.999, 1]]
    rows = threefry.multivariate_normal(threefry.key_of_seed(46283648), [0, 3], covariance, 200000)
    expected = [
        [-0.9637364841366326, 1.9793978086193325],
        [-0.8030796679063769, 2.2507307100297522],
        [-0.5781598480604021, 2.4445681773041024],
    ]
    np.testing.assert_allclose(rows[[0, 1, -1]], expected, rtol=0, atol=1e-13)
