import Arguments
import Nigh
import NighRecord

/// Whether what passes on a session's links is written down, and where.
public struct RecordChoice: Sendable {
    /// The file.
    public let path: String
    /// How many bytes of each payload; nil for all.
    public let headLimit: Int?
    /// Whether a file that is there already may be replaced.
    public let overwrites: Bool

    /// The options; nil where nobody asked for a record.
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

    /// Makes the file and begins. The recorder is to be finished once the session has closed.
    public func begin() throws(NighError) -> LinkRecorder {
        try LinkRecorder(path: path, headLimit: headLimit, overwrites: overwrites)
    }
}
