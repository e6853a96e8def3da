import Testing

@testable import Arguments

@Suite("How values are written")
struct NotationTests {
    @Test(
        "A duration has a unit",
        arguments: [
            ("200ms", Duration.milliseconds(200)), ("5s", .seconds(5)), ("2m", .seconds(120)),
            ("1h", .seconds(3_600)),
            ("1.5s", .milliseconds(1_500)), ("0.000000001s", .nanoseconds(1)), ("7us", .microseconds(7)),
            ("0s", .zero),
        ])
    func durations(_ text: String, _ duration: Duration) throws {
        #expect(try Notation.duration().value(of: text, for: "x") == duration)
    }

    @Test(
        "A size is in bytes",
        arguments: [
            ("0", 0), ("500", 500), ("500B", 500), ("64KiB", 65_536), ("64k", 65_536), ("1M", 1_048_576),
            ("1MB", 1_000_000),
            ("1.5MB", 1_500_000), ("0.5KiB", 512), ("2G", 2 << 30), ("1.50KiB", 1_536),
        ])
    func sizes(_ text: String, _ size: Int) throws {
        #expect(try Notation.size().value(of: text, for: "x") == size)
    }

    @Test(
        "A rate is in bits a second",
        arguments: [
            ("64kbit/s", 64_000), ("9bit/s", 9), ("8KiB/s", 65_536), ("1MB/s", 8_000_000),
            ("100M", 100_000_000),
        ])
    func rates(_ text: String, _ rate: Int) throws {
        #expect(try Notation.rate().value(of: text, for: "x") == rate)
    }

    @Test(
        "A value that is not a whole quantity is refused",
        arguments: [
            "s", "-1s", "1e3s", "1.s", ".5s", "1 s", "0.0000000001s", "９s", "9999999999999999999999s",
            "9223372036854775807h", "1S",
        ])
    func noDurations(_ text: String) {
        let error = #expect(throws: UsageError.self) { try Notation.duration().value(of: text, for: "x") }
        #expect(error?.description.contains("is not a duration such as") == true)
    }

    @Test("Seconds have no unit, and are written with only the digits that they need")
    func seconds() throws {
        let notation = Notation.seconds(in: .milliseconds(100) ... .seconds(590))
        #expect(try notation.value(of: "5", for: "x") == .seconds(5))
        #expect(try notation.value(of: "0.33", for: "x") == .milliseconds(330))
        #expect(notation.write(.seconds(5)) == "5" && notation.write(.milliseconds(330)) == "0.33")
        for text in ["5s", "0.05", "591", "-1", "1e1", "1.2.3", "inf"] {
            let error = #expect(throws: UsageError.self, "\(text)") {
                try notation.value(of: text, for: "x")
            }
            #expect(error?.description == "x: \"\(text)\" is not 0.1 to 590, as in 5 or 0.5")
        }
    }

    @Test("A list is read value by value, and no value may be missing")
    func lists() throws {
        let sizes = Notation<[Int]>.list(of: .size(in: 8...65_536), atMost: 3)
        #expect(try sizes.value(of: "64,1k,64KiB", for: "x") == [64, 1_024, 65_536])
        #expect(sizes.write([64, 1_024]) == "64,1KiB")
        for text in ["64,", ",64", "64,,65", "7", "64,x", "8,8,8,8"] {
            #expect(throws: UsageError.self, "\(text)") { try sizes.value(of: text, for: "x") }
        }
        #expect(try Notation.duration().value(of: "0", for: "x") == .zero)
        #expect(throws: UsageError.self) {
            try Notation.duration(in: .seconds(1) ... .seconds(2)).value(of: "0", for: "x")
        }
    }

    @Test("A default is read back as it was written")
    func roundTrips() throws {
        for exponent in 0..<63 {
            for value in [
                1 << exponent, 1 << exponent - 1, 1_000 << (exponent / 2), 3_600_000_000_000 &* exponent,
            ] {
                let (size, rate, duration) = (Notation.size(), Notation.rate(), Notation<Duration>.duration())
                #expect(try size.value(of: size.write(value), for: "x") == value)
                #expect(try rate.value(of: rate.write(value), for: "x") == value)
                let span = Duration.nanoseconds(value)
                #expect(try duration.value(of: duration.write(span), for: "x") == span)
            }
        }
    }

    @Test("A default is written in the largest unit in which it is whole")
    func writing() {
        #expect(Notation.size().write(65_536) == "64KiB")
        #expect(Notation.size().write(1_000_000) == "1MB")
        #expect(Notation.size().write(7) == "7")
        #expect(Notation.rate().write(64_000) == "64kbit/s")
        #expect(Notation.duration().write(.milliseconds(1_500)) == "1500ms")
        #expect(Notation.duration().write(.zero) == "0ns")
    }

    @Test(
        "The distance between two words is the number of letters to add, remove or replace",
        arguments: [
            ("", "abc", 3), ("abc", "", 3), ("name", "nmae", 1), ("name", "names", 1),
            ("kitten", "sitting", 3), ("same", "same", 0),
        ])
    func distances(_ one: String, _ other: String, _ distance: Int) {
        #expect(SpellingSuggestion.distance(one, other) == distance)
        #expect(SpellingSuggestion.distance(other, one) == distance)
    }
}
