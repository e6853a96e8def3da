/// As much of swift-log's `Logger` as Nigh uses. It prints each line.
public struct Logger: Sendable {
    /// The levels of swift-log.
    public enum Level: String, CaseIterable, Sendable {
        case trace, debug, info, notice, warning, error, critical
    }

    /// A fact beside a message.
    public enum MetadataValue: Sendable {
        case string(String)
    }

    /// The facts beside a message, by name.
    public typealias Metadata = [String: MetadataValue]

    /// A message, written as a literal.
    public struct Message: ExpressibleByStringInterpolation, Sendable {
        let text: String

        /// Makes a message of a literal.
        public init(stringLiteral text: String) { self.text = text }
    }

    private let label: String

    /// Makes a logger.
    public init(label: String) { self.label = label }

    /// Prints a line.
    public func log(
        level: Level, _ message: @autoclosure () -> Message, metadata: @autoclosure () -> Metadata? = nil,
        source: @autoclosure () -> String? = nil, file: String = #fileID, function: String = #function,
        line: UInt = #line
    ) {
        let facts = (metadata() ?? [:]).sorted { $0.key < $1.key }.map { name, value in
            switch value {
            case .string(let text): "\(name)=\(text)"
            }
        }
        print("log", label, level, source() ?? "", message().text, facts, separator: "|")
    }
}
