import Arguments
import NighLoop
import NighRecord

/// Whether and where what passes on a session's links is recorded.
public struct RecordChoice: Sendable {
    /// The file of the record.
    public let path: String
    /// The number of bytes to record of each payload; nil for all.
    public let headLimit: Int?
    /// Whether an existing file may be replaced.
    public let overwrites: Bool

    /// The options; nil if the command line asks for no record.
    public static let options = OptionGroup(
        "Record",
        Option(
            "record", .text("FILE", candidates: .files),
            "writes down all that passes on the links, for `nigh trace FILE`: in plain text, and readable by you alone"
        ),
        Option(
            "record-bytes", .size("BYTES", in: 0...(1 << 24)),
            "records only how payloads begin, up to so many bytes; all of them without it"),
        Option(flag: "record-overwrite", "replaces the record's file where it is there already")
    ) { path, headLimit, overwrites -> RecordChoice? in
        guard let path else {
            if headLimit != nil || overwrites {
                throw Misuse("--record-bytes and --record-overwrite need --record FILE")
            }
            return nil
        }
        return RecordChoice(path: path, headLimit: headLimit, overwrites: overwrites)
    }

    /// Creates the file and begins to record. The caller finishes the recorder once the session has closed.
    public func begin() throws(NighError) -> LinkRecorder {
        try LinkRecorder(path: path, headLimit: headLimit, overwrites: overwrites)
    }
}
