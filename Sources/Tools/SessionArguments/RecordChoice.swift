import Arguments
import NighLoop
import NighRecord

/// Whether and where the frames on a session's links are recorded.
public struct RecordChoice: Sendable {
    /// The file of the record.
    public let path: String
    /// The number of bytes to record of each payload; nil for all.
    public let headLimit: Int?
    /// Whether an existing file may be replaced.
    public let overwrites: Bool

    /// The options; nil if the command line asks for no record.
    public static let options = OptionGroup(
        "Record", isShared: true,
        Option(
            "record", .text("FILE", candidates: .files),
            "records everything that passes on the links, for `nigh trace FILE`: unencrypted, readable only by you"
        ),
        Option(
            "record-bytes", .size("BYTES", in: 0...(1 << 24)),
            "records at most this many bytes of each payload; by default all"),
        Option(flag: "record-force", "replaces the file of the record if it exists").formerly(
            "record-overwrite")
    ) { path, headLimit, overwrites -> RecordChoice? in
        guard let path else {
            if headLimit != nil || overwrites {
                throw UsageError("--record-bytes and --record-force need --record FILE")
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
