//! Groups of some of a group's ranks.

use crate::common::{Case, all_say, both, each, exchange_and_compare, options};
use rankwise::halo::Halo;
use rankwise::{Group, GroupError, Options};

/// Case wrong-peer-in-subgroup.
#[test]
fn a_subgroup_counts_its_own_ranks_whatever_the_list() {
    for list in [&[2, 3][..], &[3, 1], &[0], &[1, 3, 0, 2]] {
        for groups in both("subgroup", 4, &options(5000, &[])) {
            let ranks = each(groups, move |group| {
                let sub = group.subgroup(list).unwrap()?;
                assert_eq!((sub.world() as usize, sub.backend()), (list.len(), group.backend()));
                for arm in ["ring", "neighbour"] {
                    let mut halo = Halo::with_override(&sub, Some(arm));
                    exchange_and_compare(&mut halo, &sub, &Case::small(1)).unwrap();
                }
                Some(sub.rank())
            });
            let expected = (0..4).map(|old| list.iter().position(|&r| r == old).map(|new| new as u32));
            assert_eq!(ranks, expected.collect::<Vec<_>>());
        }
    }
}

/// GRP-6.
#[test]
fn bad_lists_are_refused_by_name_on_all_ranks() {
    let bad = [
        (&[][..], "rank 0: the list of ranks is empty"),
        (&[1, 4], "rank 0: the list of ranks has an entry that is no rank of the group: found \"4\""),
        (&[2, 2], "rank 0: the list of ranks has an entry twice: found \"2\""),
    ];
    for (list, text) in bad {
        let groups = Group::threads(3, &options(5000, &[])).unwrap();
        all_say(&each(groups, move |group| group.subgroup(list)), text);
    }
}

/// GRP-6.
#[test]
fn lists_that_differ_are_refused_on_all_ranks_and_the_group_lives() {
    for groups in both("differ", 4, &options(5000, &[])) {
        let results = each(groups, |group| {
            let list = if group.rank() < 2 { [0, 1] } else { [2, 3] };
            let refused = group.subgroup(&list);
            group.barrier().unwrap();
            assert!(group.subgroup(&[3, 2, 1, 0]).unwrap().is_some());
            refused
        });
        all_say(&results, "digest of the ranks listed differs by rank");
    }
}

#[test]
fn the_end_of_a_subgroup_does_not_end_its_parent_nor_the_other_way_round() {
    for groups in both("apart", 3, &options(5000, &[])) {
        each(groups, |group| {
            let first = group.subgroup(&[0, 1]).unwrap();
            let second = group.subgroup(&[1, 0, 2]).unwrap().unwrap();
            if let Some(first) = &first {
                first.abort();
                assert!(matches!(first.barrier(), Err(GroupError::Poisoned(_))));
            }
            group.barrier().unwrap();
            group.abort();
            second.barrier().unwrap();
        });
    }
}

#[test]
fn a_subgroup_keeps_a_log_if_its_parent_does() {
    for events in [0, 100] {
        let options = Options { trace_events_max: events, ..Options::default() };
        each(Group::threads(2, &options).unwrap(), move |group| {
            let sub = group.subgroup(&[1, 0]).unwrap().unwrap();
            assert_eq!(sub.trace().is_some(), events > 0);
        });
    }
}

#[test]
fn a_subgroup_of_a_subgroup_works() {
    for groups in both("nested", 4, &options(5000, &[])) {
        each(groups, |group| {
            let Some(sub) = group.subgroup(&[3, 2, 1]).unwrap() else { return };
            let Some(nested) = sub.subgroup(&[2, 0]).unwrap() else { return };
            assert_eq!(group.rank(), if nested.rank() == 0 { 1 } else { 3 });
            exchange_and_compare(&mut Halo::with_override(&nested, None), &nested, &Case::small(2)).unwrap();
        });
    }
}
