import Synchronization

/// The values that programs have reported. The real package passes them on to a backend.
public enum Backend {
    private static let values = Mutex<[String: Double]>([:])

    /// The sum of a counter, or the last value of a gauge, in all dimensions; nil where it never had one or is
    /// destroyed.
    public static func value(of label: String) -> Double? {
        values.withLock { values in
            let all = values.filter { $0.key.hasPrefix("\(label){") }.values
            return all.isEmpty ? nil : all.reduce(0, +)
        }
    }

    /// The names of all that have a value, with their dimensions.
    public static var names: [String] { values.withLock { $0.keys.sorted() } }

    static func change(_ name: String, _ change: (Double?) -> Double?) {
        values.withLock { $0[name] = change($0[name]) }
    }

    static func name(_ label: String, _ dimensions: [(String, String)]) -> String {
        "\(label){\(dimensions.map { "\($0.0)=\($0.1)" }.joined(separator: ","))}"
    }
}

/// As much of swift-metrics's `Counter` as Nigh uses.
public final class Counter {
    private let name: String

    /// Makes a counter.
    public init(label: String, dimensions: [(String, String)] = []) { name = Backend.name(label, dimensions) }

    /// Increments the counter.
    public func increment<DataType: BinaryInteger>(by amount: DataType) {
        Backend.change(name) { ($0 ?? 0) + Double(amount) }
    }

    /// Forgets the counter.
    public func destroy() { Backend.change(name) { _ in nil } }
}

/// As much of swift-metrics's `Gauge` as Nigh uses.
public final class Gauge {
    private let name: String

    /// Makes a gauge.
    public init(label: String, dimensions: [(String, String)] = []) { name = Backend.name(label, dimensions) }

    /// Records a value.
    public func record<DataType: BinaryFloatingPoint>(_ value: DataType) {
        Backend.change(name) { _ in Double(value) }
    }

    /// Forgets the gauge.
    public func destroy() { Backend.change(name) { _ in nil } }
}
