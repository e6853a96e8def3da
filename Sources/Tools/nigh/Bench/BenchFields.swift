import NighCore

/// Writes the fields of measurement messages, in the encoding of the session's own frames.
extension FieldWriter {
    mutating func write(_ amount: BenchAmount) {
        write(amount.messages)
        write(amount.bytes)
    }

    mutating func write(_ count: BenchCount) {
        write(count.amount)
        write(count.nanoseconds)
    }
}

/// Reads the fields of measurement messages; every read is checked.
struct BenchReader {
    private var fields: FieldReader

    init(_ bytes: UnsafeRawBufferPointer) { fields = FieldReader(bytes) }

    mutating func number<Number: FixedWidthInteger>(_ type: Number.Type) throws(BenchBreach) -> Number {
        try read { fields throws(WireError) in try fields.number(type, "a message") }
    }

    mutating func raw(_ count: Int) throws(BenchBreach) -> [UInt8] {
        try read { fields throws(WireError) in Array(try fields.take(count, "a message")) }
    }

    /// Text after its length in one byte; must be UTF-8.
    mutating func text() throws(BenchBreach) -> String {
        try read { fields throws(WireError) in try fields.shortText("what a message says") }
    }

    mutating func amount() throws(BenchBreach) -> BenchAmount {
        BenchAmount(messages: try number(UInt64.self), bytes: try number(UInt64.self))
    }

    mutating func count() throws(BenchBreach) -> BenchCount {
        BenchCount(amount: try amount(), nanoseconds: try number(UInt64.self))
    }

    mutating func finish() throws(BenchBreach) {
        try read { fields throws(WireError) in try fields.finish("a message") }
    }

    private mutating func read<Value>(
        _ body: (inout FieldReader) throws(WireError) -> Value
    ) throws(BenchBreach) -> Value {
        do throws(WireError) { return try body(&fields) } catch { throw BenchBreach(error.message) }
    }
}
