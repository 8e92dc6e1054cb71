"""All-gather along edge-disjoint Hamiltonian cycles."""
