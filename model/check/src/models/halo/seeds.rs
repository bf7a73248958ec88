//! Rules of the halo transport that this one started from, where its design has a hole. Each is refuted by the claim it names; `docs/findings.md` is made from
//! what is said here.

use super::super::mutant;
use super::hal;
use super::lifecycle::{self, failure, one_arm_study, stream_order};
use super::tables::{self, bands, shapes};
use crate::registry::{Mutant, SeedVariant};
use rankwise_protocol::halo::Stream;

mutant!(
    /// Each process reads the override for itself and tells nobody.
    SeedOverride { fn override_in_record() -> bool { false } }
);
mutant!(
    /// A word that is no arm counts as no override.
    SeedUnknownWord { fn unknown_override_is_refused() -> bool { false } }
);
mutant!(
    /// Each rank acts on the copy of the policy that it was built with.
    SeedPolicyCopies { fn policy_in_record() -> bool { false } }
);
mutant!(
    /// An exception between start and end of a group leaves it open.
    SeedOpenGroup { fn group_closed_after_error() -> bool { false } }
);
mutant!(
    /// The handle holds the buffers; when it goes, they go.
    SeedDroppedHandle { fn release_after(_: Stream) -> Option<Stream> { None } }
);
mutant!(
    /// Pack and unpack take the memory for what the sizes say.
    SeedUncheckedBand { fn band_is_checked() -> bool { false } }
);
mutant!(
    /// A band may be without a row.
    SeedEmptyBand { fn band_needs_a_row() -> bool { false } }
);

/// The holes, in the order of the findings.
pub(super) fn variants() -> Vec<SeedVariant> {
    vec![
        SeedVariant {
            title: "The override may differ by rank",
            story: "The variable that forces an arm is read by each process for itself. A comment says that it must be \
                    the same everywhere, and nothing looks. With it set on one rank, that rank enters a collective \
                    and its peers a group of sends and receives: they never meet, and the job hangs without a word. \
                    Exchange the value once, before the first halo, and refuse to go on if it differs.",
            closed_by: "Here the override is a field of every call's record; a rank with another value is named on all \
                        ranks before a leg is posted (HAL-1).",
            as_mutant: Mutant {
                name: "seed-override-by-rank",
                requirement: hal(1),
                study: lifecycle::ARMS,
                claim: lifecycle::ONE_ARM,
                run: one_arm_study::<SeedOverride>,
            },
        },
        SeedVariant {
            title: "An override that is no arm is ignored",
            story: "A mistyped or empty value falls back to the policy. A measurement that was meant to compare two arms \
                    compares one with itself, and says so nowhere. Refuse a value that is not in the list.",
            closed_by: "Here an unknown or empty override is a refusal that names rank and value (HAL-1).",
            as_mutant: Mutant {
                name: "seed-unknown-override-ignored",
                requirement: hal(1),
                study: lifecycle::ARMS,
                claim: lifecycle::ONE_ARM,
                run: one_arm_study::<SeedUnknownWord>,
            },
        },
        SeedVariant {
            title: "The policy is stated in three places",
            story: "File header, comment and contract each state which arm runs at which world, and have disagreed about \
                    world 4 before. Comments do not run, but builds do: two ranks from two builds with different rules \
                    take different arms at the same world, as the run below shows, and hang. State the rule once, as \
                    data, and compare it between ranks.",
            closed_by: "Here `model/policy.toml` is the one source, embedded at build, and its digest is a field of every \
                        call's record (HAL-1).",
            as_mutant: Mutant {
                name: "seed-policy-copies",
                requirement: hal(1),
                study: lifecycle::ARMS,
                claim: lifecycle::ONE_ARM,
                run: one_arm_study::<SeedPolicyCopies>,
            },
        },
        SeedVariant {
            title: "A throw inside an open group",
            story: "All tensor work is done before the group opens, as a comment explains, but the sends and receives \
                    themselves can throw between start and end. Then the group stays open, every later call of this \
                    process falls into it, and peers wait for legs that are never launched. Close the group on every \
                    path out, with a guard.",
            closed_by: "Here the group is closed on every path, and the failure ends the group for all (HAL-7, HAL-10).",
            as_mutant: Mutant {
                name: "seed-group-left-open",
                requirement: hal(7),
                study: lifecycle::FAILURE,
                claim: lifecycle::CLOSED,
                run: failure::<SeedOpenGroup>,
            },
        },
        SeedVariant {
            title: "A handle dropped before it was waited for",
            story: "The handle owns the buffers and nothing more: if it goes out of scope unwaited, after an exception say, \
                    the buffers are freed while the transport still reads and writes them. Keep them until the \
                    transport has passed.",
            closed_by: "Here a dropped handle leaves its buffers with the transport until the legs are done (HAL-6).",
            as_mutant: Mutant {
                name: "seed-handle-frees-in-flight",
                requirement: hal(6),
                study: lifecycle::ORDER,
                claim: lifecycle::IN_ORDER,
                run: stream_order::<SeedDroppedHandle>,
            },
        },
        SeedVariant {
            title: "Pack takes any memory",
            story: "Pack and unpack check that the channels are a multiple of eight, and neither element type nor layout. \
                    A tensor of another type or in another order is packed as if it were right: the rows that arrive \
                    are not rows. Check type, layout and size before anything is sent, and tell the peers.",
            closed_by: "Here a buffer that is not what its shape says is a refusal of the call on all ranks, and the \
                        element type is compared (HAL-12).",
            as_mutant: Mutant {
                name: "seed-band-unchecked",
                requirement: hal(12),
                study: tables::SHAPES,
                claim: tables::WHOLE,
                run: shapes::<SeedUncheckedBand>,
            },
        },
        SeedVariant {
            title: "A band without rows",
            story: "With more ranks than rows some band is empty. Its first real row is then its lower pad row and its last \
                    real row the upper: the rank sends pad rows as if they were data. Refuse such a split.",
            closed_by: "Here more ranks than rows is refused by name (HAL-8).",
            as_mutant: Mutant {
                name: "seed-empty-band",
                requirement: hal(8),
                study: tables::BANDS,
                claim: tables::COVERED,
                run: bands::<SeedEmptyBand>,
            },
        },
    ]
}
