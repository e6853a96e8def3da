import NighCore
import Testing

@testable import NighFiles
@testable import nigh

/// Tests when `nigh send` gives up.
@Suite struct SendPatienceTests {
    private func time(_ seconds: Int64) -> Moment { Moment(nanoseconds: seconds * 1_000_000_000) }

    private func progress(_ state: FileProgress.State, done: Int = 0) -> FileProgress {
        FileProgress(
            state: state, done: done, total: 100, resumed: 0, transferred: done, itemsDone: 0,
            itemsFailed: 0, itemCount: 1, current: nil, bytesPerSecond: nil)
    }

    /// The second at which a send gives up after `progress` at second 0, if it does within two hours.
    private func end(
        _ chosen: Duration?, _ progress: FileProgress, canBeRepeated: Bool = true, lostAt: Int64? = nil
    ) -> Int64? {
        var patience = SendPatience(chosen, canBeRepeated: canBeRepeated, at: time(0))
        patience.note(progress, at: time(0))
        return (0...7_200).first { second in
            if second == lostAt { patience.lostLink(at: time(second)) }
            return patience.exceeded(at: time(second)) != nil
        }
    }

    @Test("The time that the user chose holds at any time, also once the receiver has accepted")
    func chosen() {
        #expect(end(.seconds(4), progress(.waiting)) == 4)
        #expect(end(.seconds(4), progress(.transferring, done: 10)) == 4)
        #expect(end(.seconds(4), progress(.transferring, done: 10), lostAt: 2) == 4)
        #expect(end(.seconds(3_600), progress(.transferring, done: 10)) == 3_600)
    }

    @Test("By default, a receiver has a minute to accept, and ten for what it was sent")
    func byDefault() {
        #expect(end(nil, progress(.waiting)) == 60)
        #expect(end(nil, progress(.transferring, done: 10)) == 600)
        #expect(end(nil, progress(.transferring, done: 10), lostAt: 100) == 160)
        #expect(end(nil, progress(.transferring, done: 10), lostAt: 590) == 600)
    }

    @Test("A side that has paused, and a program that writes into a pipe, may take any time")
    func anyTime() {
        #expect(end(.seconds(4), progress(.paused(isHere: false, reason: "the disk is full"))) == nil)
        #expect(end(.seconds(4), progress(.transferring, done: 10), canBeRepeated: false) == nil)
        #expect(end(.seconds(4), progress(.waiting), canBeRepeated: false) == 4)
    }

    @Test("Whatever moves begins the time anew")
    func moving() {
        var patience = SendPatience(.seconds(4), canBeRepeated: true, at: time(0))
        for second: Int64 in 0..<100 {
            patience.note(progress(.transferring, done: Int(second)), at: time(second * 3))
            #expect(patience.exceeded(at: time(second * 3 + 3)) == nil)
        }
        patience.note(progress(.transferring, done: 99), at: time(300))
        #expect(patience.exceeded(at: time(301)) == .seconds(4))
    }
}
