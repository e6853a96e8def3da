import ChildPrograms
import Testing

@testable import Arguments

@Suite("How values are written")
struct NotationTests {
    @Test func `Durations, sizes, rates and seconds are read as the table has them`() throws {
        let seconds = Notation.seconds(in: .milliseconds(100) ... .seconds(590))
        let differences = try Snapshots.differences(inTable: "Arguments/notations.txt") { row in
            let text = String(row.drop { $0 != " " }.dropFirst())
            do {
                switch row.prefix(while: { $0 != " " }) {
                case "duration": return "\(try Notation.duration().value(of: text, for: "x"))"
                case "size": return "\(try Notation.size().value(of: text, for: "x"))"
                case "rate": return "\(try Notation.rate().value(of: text, for: "x"))"
                default:
                    let value = try seconds.value(of: text, for: "x")
                    return "\(value), written \(seconds.write(value))"
                }
            } catch { return "\(error)" }
        }
        #expect(differences == [])
    }

    @Test func `A list is read value by value, and no value may be missing`() throws {
        let sizes = Notation<[Int]>.list(of: .size(in: 8...65_536), atMost: 3)
        #expect(try sizes.value(of: "64,1k,64KiB", for: "x") == [64, 1_024, 65_536])
        #expect(sizes.write([64, 1_024]) == "64,1KiB")
        for text in ["64,", ",64", "64,,65", "7", "64,x", "8,8,8,8"] {
            #expect(throws: UsageError.self, "\(text)") { try sizes.value(of: text, for: "x") }
        }
        #expect(throws: UsageError.self) {
            try Notation.duration(in: .seconds(1) ... .seconds(2)).value(of: "0", for: "x")
        }
    }

    @Test func `A default is read back as it was written`() throws {
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

    @Test func `A default is written in the largest unit in which it is whole`() {
        #expect(Notation.size().write(65_536) == "64KiB")
        #expect(Notation.size().write(1_000_000) == "1MB")
        #expect(Notation.size().write(7) == "7")
        #expect(Notation.rate().write(64_000) == "64kbit/s")
        #expect(Notation.duration().write(.milliseconds(1_500)) == "1500ms")
        #expect(Notation.duration().write(.zero) == "0ns")
    }

    @Test(arguments: [
        ("", "abc", 3), ("abc", "", 3), ("name", "nmae", 1), ("name", "names", 1),
        ("kitten", "sitting", 3), ("same", "same", 0),
    ])
    func `The distance between two words is the number of letters to add, remove or replace`(
        _ one: String, _ other: String, _ distance: Int
    ) {
        #expect(SpellingSuggestion.distance(one, other) == distance)
        #expect(SpellingSuggestion.distance(other, one) == distance)
    }
}
