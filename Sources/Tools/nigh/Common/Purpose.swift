/// What a `nigh` asks another for: its invitation says so, and who is asked can tell whether it does that.
enum Purpose: String, CaseIterable, Sendable {
    /// Measuring round trips, which any session answers.
    case ping
    /// Measuring throughput.
    case bench
    /// Handing over a file.
    case send
    /// Talking.
    case chat

    private static let mark = "nigh/1 "

    /// What the invitation says.
    var context: [UInt8] { Array("\(Self.mark)\(rawValue)".utf8) }

    /// What an invitation says it is for; nil where it comes from another program, or a later `nigh`.
    init?(context: [UInt8]) {
        let text = String(decoding: context, as: UTF8.self)
        guard text.hasPrefix(Self.mark) else { return nil }
        self.init(rawValue: String(text.dropFirst(Self.mark.count)))
    }
}
