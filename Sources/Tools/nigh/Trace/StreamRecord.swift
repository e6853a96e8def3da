import JSONText
import NighCalls
import NighCore

/// The content of one record in a stream for calls or actors, in words and as JSON.
struct StreamRecord {
    let text: String
    let members: [JSON.Member]

    private init(_ text: String, _ name: String, _ members: [JSON.Member] = []) {
        self.text = text
        self.members = [.init("record", .text(name))] + members
    }

    /// A record that cannot be read, or is of a later version.
    init(unknown reason: String) { self.init(reason, "unknown") }

    /// A call, or something else about a call.
    ///
    /// - Parameters:
    ///   - method: the name that the call was made by; nil if it is not known.
    ///   - isQuoted: whether the name may be any text, and stands between quotation marks.
    ///   - contentCount: how many bytes of content the record has.
    init(_ record: CallRecord, _ method: String?, isQuoted: Bool, contentCount: Int) {
        let name = method.map { isQuoted ? "\"\($0)\"" : $0 }
        let size = contentCount > 0 ? ", \(contentCount) bytes" : ""
        let bytes = JSON.Member("bytes", .integer(contentCount))
        func members(_ number: UInt64) -> [JSON.Member] {
            [.init("call", .integer(Int(clamping: number))), .init("method", JSON(method))]
        }
        func call(_ number: UInt64) -> String { "call \(number)" + (name.map { " (\($0))" } ?? "") }
        switch record {
        case .request(let number, let timeout, _, _), .numbered(let number, let timeout, _, _):
            self.init(
                "call \(number): \(name ?? "a name that was not given")\(size)", "call",
                members(number) + [.init("timeout_ms", .integer(Int(timeout))), bytes])
        case .cancel(let number): self.init("cancel \(call(number))", "cancel", members(number))
        case .answer(let number, .answer):
            self.init("answer to \(call(number))\(size)", "answer", members(number) + [bytes])
        case .answer(let number, .error):
            self.init("error of \(call(number))\(size)", "error", members(number) + [bytes])
        case .answer(let number, .unknownName):
            self.init("refused \(call(number)): no such name", "unknown-name", members(number))
        case .answer(let number, .refused(let reason, let words)):
            self.init(
                "refused \(call(number)): \(reason.words)" + (words.isEmpty ? "" : " (\(words))"), "refused",
                members(number) + [.init("reason", .text("\(reason)")), .init("words", .text(words))])
        case .credit(let count):
            self.init(
                "credit, \(count) bytes in all", "credit",
                [.init("credit_bytes", .integer(Int(clamping: count)))])
        case .name: self.init("names \(name ?? "")", "name", [.init("method", JSON(method))])
        }
    }

    /// An actor is published, or is not any more.
    init(_ record: ListingRecord) {
        switch record {
        case .published(let name, let contract, let version):
            self.init(
                "publishes \"\(name)\": \(contract), version \(version)", "published",
                [
                    .init("actor", .text(name)), .init("contract", .text(contract)),
                    .init("version", .integer(Int(version))),
                ])
        case .unpublished(let name):
            self.init("unpublishes \"\(name)\"", "unpublished", [.init("actor", .text(name))])
        }
    }

    /// A value of a sequence, or the error with which it ends.
    init(valueOfKind kind: UInt8?, contentCount: Int) {
        let name = [0: "value", 1: "failure"][kind] ?? "unknown"
        self.init("\(name), \(contentCount) bytes", name, [.init("bytes", .integer(contentCount))])
    }
}

extension CallRefusal {
    fileprivate var words: String {
        switch self {
        case .noActor: "no such actor"
        case .notAllowed: "not allowed"
        case .noMethod: "no such method"
        case .unreadable: "unreadable arguments"
        }
    }
}
