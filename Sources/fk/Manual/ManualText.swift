/// The parts of the manual page that the tables of commands do not have.
enum ManualText {
    static let summary = "downloads that resume after interruptions"

    static let description = [
        "fk downloads files over HTTP and HTTPS. Every download is a task with a small info file in the work path, which "
            + "holds its options, its state and the bytes received. A task that was interrupted, also by SIGKILL, "
            + "continues after the last byte that was written.",
        "A file gets its final name once it is complete and its digest, if one is known, is right. Until then its bytes "
            + "are in a hidden part file in the same folder.",
        "One process at a time runs the downloads of a work path. Further processes hand their tasks to it, control it "
            + "and show its progress. If it ends, a waiting process takes over.",
        "Results go to standard output; progress, warnings and errors go to standard error. With --json every query "
            + "prints one JSON document and every run one object a line.",
        "Options may stand before or after arguments. '--option=value' and '--option value' are the same; '--' ends the "
            + "options. A task is named by its URL, by the path or the name of its file, which may be a pattern such as '*.iso', or by at "
            + "least six digits of its id. SIZE and RATE take the suffixes K, "
            + "M and G, which are powers of 1024.",
    ]

    static let environment: [(names: [String], meaning: String)] = [
        (["FK_WORK_PATH"], "the work path, unless --work-path is given"),
        (["FK_STATUS_INTERVAL"], "seconds between two lines about a run where no live view is shown (default: 30)"),
        (["XDG_STATE_HOME"], "the work path is its subfolder fk if FK_WORK_PATH is not set"),
        (["HOME"], "the work path is ~/.local/state/fk if neither is set, on macOS ~/Library/Application Support/fk"),
        (
            ["http_proxy", "https_proxy", "all_proxy", "no_proxy"],
            "proxies by scheme, and the hosts that need none; --proxy takes precedence"
        ),
        (["NO_COLOR"], "no colours if it is not empty; --color=always takes precedence"),
        (["TERM"], "no live view and no colours if it is empty or dumb"),
        (["LC_ALL", "LC_CTYPE", "LANG"], "bars and marks are ASCII if the locale is not UTF-8"),
        (["TMPDIR"], "folder for temporary files of fk demo; the default is /tmp"),
    ]

    static let files: [(path: String, meaning: String)] = [
        ("~/.local/state/fk", "the default work path, which only its owner can read"),
        ("~/.local/state/fk/config", "the saved settings, see fk config set"),
        ("~/.local/state/fk/tasks", "one info file per task; with headers and passwords that the task needs"),
        ("~/.local/state/fk/barrels", "one file per barrel"),
        ("~/.local/state/fk/quarantine", "files of the work path that could not be read"),
        (".NAME.ID.fkpart", "the bytes of an unfinished file, in the folder of the file"),
        ("~/.netrc", "user names and passwords, read with --netrc only"),
    ]

    static let examples: [CommandSpec.Example] = [
        .init("fk get https://example.com/a.iso", "download a file; to resume it, run the same command again"),
        .init("fk get -b isos -d isos -j 4 -i list.txt", "download a list as a barrel, four files at once"),
        .init("fk get --detach -i list.txt && fk watch", "download in the background and watch"),
        .init("fk list --state failed && fk retry --all", "show the failed tasks and queue them again"),
        .init("fk limit 2M", "limit everything that runs to 2 MiB a second"),
        .init("fk info --json https://example.com/a.iso", "the details of a task for a script"),
    ]

    static let seeAlso =
        "The guide to the command line, the error codes and the format of the work path are in the folder Docs of the "
        + "project: CLI.md, Errors.md and InfoFile.md. Related programs are aria2c(1), curl(1) and wget(1)."
}
