"""How much memory there is, by made-up files."""

import math
import os
import resource

import pytest

from labelsense._memory import available_memory

GB = 2**30
UNLIMITED = resource.RLIM_INFINITY


@pytest.fixture
def system(tmp_path, monkeypatch):
    """Return what writes files of a system without limits that has 8 GB left."""
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (UNLIMITED, UNLIMITED))

    def write(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    write({"proc/meminfo": f"MemTotal: 99999999 kB\nMemAvailable:   {8 * 2**20} kB\n"})
    return write


def test_of_a_machine_without_limits(system):
    assert available_memory(system({})) == 8 * GB


def test_nothing_is_known_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (UNLIMITED, UNLIMITED))
    assert available_memory(tmp_path) == math.inf


def group(folder, limit, used=None, reclaimable=None, version=2):
    """Return the files of a control group."""
    names = {2: ("max", "current", "inactive_file"), 1: ("limit_in_bytes", "usage_in_bytes", "total_inactive_file")}
    files = {f"{folder}/memory.{names[version][0]}": f"{limit}\n"}
    if used is not None:
        files[f"{folder}/memory.{names[version][1]}"] = f"{used}\n"
    if reclaimable is not None:
        files[f"{folder}/memory.stat"] = f"anon 5\n{names[version][2]} {reclaimable}\nfile 7\n"
    return files


class TestControlGroups:
    def test_the_limit_less_what_is_used_and_not_given_back(self, system):
        root = system(
            {"proc/self/cgroup": "0::/batch/job7\n"} | group("sys/fs/cgroup/batch/job7", 3 * GB, 2 * GB, GB // 2)
        )
        assert available_memory(root) == 1.5 * GB

    def test_those_above_count_too(self, system):
        root = system(
            {"proc/self/cgroup": "0::/batch/job7\n"}
            | group("sys/fs/cgroup/batch/job7", "max", 2 * GB)
            | group("sys/fs/cgroup/batch", 5 * GB, 4 * GB)
        )
        assert available_memory(root) == GB

    def test_a_container_that_is_at_the_top_of_what_it_sees(self, system):
        root = system({"proc/self/cgroup": "0::/\n"} | group("sys/fs/cgroup", 2 * GB, 0))
        assert available_memory(root) == 2 * GB

    @pytest.mark.parametrize("place", ["/docker/0123abcd", "/../../system.slice/job"])
    def test_a_container_that_is_told_its_place_on_the_host(self, system, place):
        root = system({"proc/self/cgroup": f"0::{place}\n"} | group("sys/fs/cgroup", 2 * GB, GB))
        assert available_memory(root) == GB

    def test_version_1(self, system):
        root = system(
            {"proc/self/cgroup": "12:cpu,cpuacct:/x\n7:memory:/slurm/job\n1:name=systemd:/y:z\n0::/ignored\n"}
            | group("sys/fs/cgroup/memory/slurm/job", 4 * GB, 3 * GB, GB, version=1)
            | group("sys/fs/cgroup/memory/slurm", 9223372036854771712, 3 * GB, 0, version=1)
        )
        assert available_memory(root) == 2 * GB

    def test_a_larger_limit_than_the_machine_has_left(self, system):
        root = system({"proc/self/cgroup": "0::/a\n"} | group("sys/fs/cgroup/a", 64 * GB, 0))
        assert available_memory(root) == 8 * GB

    def test_more_used_than_allowed_leaves_nothing(self, system):
        root = system({"proc/self/cgroup": "0::/a\n"} | group("sys/fs/cgroup/a", GB, 2 * GB))
        assert available_memory(root) == 0


def test_the_address_space_of_the_process(system, monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (3 * GB, UNLIMITED))
    pages = GB // os.sysconf("SC_PAGE_SIZE")
    assert available_memory(system({"proc/self/statm": f"{pages} 10 10 10 0 10 0\n"})) == 2 * GB


def test_this_machine_has_some():
    assert available_memory() > 0
