import NighCalls
import NighCore
import NighRecord

/// A stream for calls or actors whose bytes are known from its beginning.
struct TracedStream {
    /// The kind of records in a stream.
    private enum Content {
        case calls
        case listing
        case values
    }

    let name: String
    let purpose: StreamPurpose
    private let content: Content
    /// The readers of both directions; nil once bytes are missing, or break the rules.
    private var cutters: [RecordCutter?] = [RecordCutter(), RecordCutter()]
    /// The names that have numbers.
    private var names: [String] = []
    /// The names of the calls without an outcome, by their numbers.
    private var calls: [UInt64: String] = [:]

    /// The most calls that are followed: more than wait in one stream at once.
    private static let callLimit = 8_192

    /// Returns nil for a stream without such records.
    init?(name: String, purpose: StreamPurpose) {
        self.name = name
        self.purpose = purpose
        switch (purpose, name.first) {
        case (.calls, _), (.actors, ActorStream.published), (.actors, ActorStream.numbered): content = .calls
        case (.actors, nil): content = .listing
        case (.actors, ActorStream.values): content = .values
        default: return nil
        }
    }

    /// The stream in a line.
    var label: String { name.isEmpty ? "\(purpose)" : "\(purpose), \(name)" }

    /// Stops reading in a direction, because bytes are missing there.
    mutating func lose(_ direction: PacketDirection) { cutters[Int(direction.rawValue)] = nil }

    /// Returns the records that end with these bytes.
    mutating func read(_ bytes: ByteSlice, _ direction: PacketDirection) -> [StreamRecord] {
        var summaries: [StreamRecord] = []
        do throws(WireError) {
            for record in cutters[Int(direction.rawValue)]?.append(bytes) ?? [] {
                summaries.append(
                    try summary(of: record) ?? StreamRecord(unknown: "a record of a later version"))
            }
        } catch {
            lose(direction)
            summaries.append(StreamRecord(unknown: "breaks the rules of the stream: \(error.message)"))
        }
        return summaries
    }

    /// Returns nil for a record of a later version.
    private mutating func summary(of record: RecordCutter.RecordHead) throws(WireError) -> StreamRecord? {
        switch content {
        case .calls: return try CallRecord(reading: record.head).map { summary(of: $0, record) }
        case .listing: return try ListingRecord(reading: record.head).map { StreamRecord($0) }
        case .values:
            return StreamRecord(
                valueOfKind: record.head.withUnsafeBytes(\.first), contentCount: max(record.length - 1, 0))
        }
    }

    private mutating func summary(of call: CallRecord, _ record: RecordCutter.RecordHead) -> StreamRecord {
        var method: String?
        var content = 0
        switch call {
        case .name(let name):
            method = shown(name)
            if names.count < CallRecord.mostNames { names.append(shown(name)) }
        case .request(let number, _, let name, let body):
            method = shown(name)
            content = body.count
            begin(number, method)
        case .numbered(let number, _, let index, let body):
            method = names.indices.contains(Int(index)) ? names[Int(index)] : nil
            content = body.count
            begin(number, method)
        case .answer(let number, let outcome):
            method = calls.removeValue(forKey: number)
            switch outcome {
            case .answer(let body), .error(let body): content = body.count
            case .unknownName, .refused: break
            }
        case .cancel(let number): method = calls.removeValue(forKey: number)
        case .credit: break
        }
        // Only the beginning of a long content was kept.
        if content > 0 { content += record.length - record.head.count }
        return StreamRecord(call, method, isQuoted: purpose == .calls, contentCount: content)
    }

    private mutating func begin(_ number: UInt64, _ method: String?) {
        if calls.count >= Self.callLimit { calls = [:] }
        calls[number] = method
    }

    /// The name of a call without its signature, if it has one, and without control characters: peers may put anything
    /// into it.
    private func shown(_ name: String) -> String {
        let scalars = name.unicodeScalars.map { $0.properties.generalCategory == .control ? " " : $0 }
        let name = String(String.UnicodeScalarView(scalars))
        guard purpose == .actors, let space = name.lastIndex(of: " ") else { return name }
        return String(name[..<space])
    }
}
