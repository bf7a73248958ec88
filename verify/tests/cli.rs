//! The command `rankwise`, as its users meet it.

mod cli {
    mod common;

    mod bad_input;
    mod certificate;
    mod diff;
    mod explain;
    mod html;
    mod kill;
    mod npy;
    mod prove;
    mod regression;
    mod replay;
    mod run;
}
