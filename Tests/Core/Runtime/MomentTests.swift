import Testing

@testable import NighCore

extension Moment {
    /// The moment this many milliseconds after the beginning of a test.
    static func at(_ milliseconds: Int64) -> Moment { Moment(nanoseconds: 0) + .milliseconds(milliseconds) }
}

@Suite struct MomentTests {
    typealias Span = Moment.Span

    @Test func `Moments are ordered and shifted by spans`() {
        let start = Moment(nanoseconds: 1_000)
        #expect(start + .milliseconds(2) == Moment(nanoseconds: 2_001_000))
        #expect(start + Span(nanoseconds: -400) == Moment(nanoseconds: 600))
        #expect(start < start + Span(nanoseconds: 1))
        #expect(start + .seconds(3) - start == .seconds(3))
        #expect(start - (start + .seconds(3)) == Span(nanoseconds: -3_000_000_000))
        #expect(start < .never)
    }

    /// A distant deadline must stay distant. If it wrapped around, it would be due at once.
    @Test func `Arithmetic saturates at the ends of time`() {
        let late = Moment(nanoseconds: .max - 5)
        let early = Moment(nanoseconds: .min + 5)
        let (longest, mostNegative) = (Span(nanoseconds: .max), Span(nanoseconds: .min))
        #expect(late + .seconds(1) == .never && Moment.never + .seconds(1) == .never)
        #expect(early + Span(nanoseconds: -10) == Moment(nanoseconds: .min))
        #expect(late - early == longest && Moment.never - Moment(nanoseconds: -1) == longest)
        #expect(early - late == mostNegative)
        #expect(longest + .seconds(1) == longest && mostNegative + Span(nanoseconds: -1) == mostNegative)
        #expect(Span.seconds(.max) == longest && Span.milliseconds(.max) == longest)
        #expect(Span.seconds(.min) == mostNegative && Span.milliseconds(.min) == mostNegative)
    }

    @Test func `Durations become spans and back`() {
        #expect(Span(.milliseconds(1_500)) == .milliseconds(1_500))
        #expect(Span(.nanoseconds(-7)) == Span(nanoseconds: -7))
        #expect(Span(.milliseconds(-1_500)) == .milliseconds(-1_500))
        #expect(Span(.zero) == .zero)
        #expect(Span.milliseconds(1_500).duration == .milliseconds(1_500))
        #expect(Span(.seconds(300 * 365 * 86_400)) == Span(nanoseconds: .max), "300 years are too many")
        #expect(Span(.seconds(-300 * 365 * 86_400)) == Span(nanoseconds: .min))
        #expect(Span(.seconds(Int64.max)) == Span(nanoseconds: .max))
        #expect(Span(.nanoseconds(Int64.max)) == Span(nanoseconds: .max))
    }

    @Test func `Spans have readable descriptions`() {
        for (nanoseconds, text) in [
            (999, "999 ns"), (-1_500, "-1 µs"), (999_999_999, "999 ms"), (4_000_000_000, "4 s"),
            (4_834_600_000, "4.8 s"), (9_999_000_000, "9.9 s"), (10_000_000_000, "10 s"),
            (Int64.min, "-9223372036 s"),
        ] {
            #expect(Span(nanoseconds: nanoseconds).description == text)
        }
        #expect("\(Moment.never)" == "never" && "\(Moment(nanoseconds: 5_000_000))" == "5 ms")
    }
}

@Suite struct SeededGeneratorTests {
    /// A seed in a bug report must mean the same run on every machine. These are the reference outputs of SplitMix64.
    @Test func `A seed means the same numbers everywhere`() {
        var generator = SeededGenerator(seed: 1_234_567)
        let expected: [UInt64] = [
            6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423,
            4_593_380_528_125_082_431, 16_408_922_859_458_223_821,
        ]
        for number in expected { #expect(generator.next() == number) }
    }

    @Test func `A fork does not depend on what is drawn later`() {
        var one = SeededGenerator(seed: 9)
        var other = SeededGenerator(seed: 9)
        var forkOfOne = one.fork()
        var forkOfOther = other.fork()
        for _ in 0..<100 { _ = other.next() }
        for _ in 0..<10 { #expect(forkOfOne.next() == forkOfOther.next()) }
        #expect(one.next() != forkOfOne.next())
    }

    @Test func `A span that stands for never is jittered without a trap`() {
        var generator = SeededGenerator(seed: 3)
        for span in [Moment.Span(nanoseconds: .max), Moment.Span(nanoseconds: .max / 5 * 4 + 5)] {
            #expect(generator.jittered(span) >= Moment.Span(nanoseconds: .max / 2))
        }
    }

    @Test func `Chances occur at their stated rate`() {
        var generator = SeededGenerator(seed: 3)
        let hits = (0..<10_000).count { _ in generator.oneIn(10) }
        #expect((900...1_100).contains(hits))
        let certain = [generator.oneIn(1), generator.oneIn(0)]
        #expect(certain == [true, true], "also of fewer chances than one")
    }
}
