import NighBluetooth
import NighCore
import Testing

/// Tests when devices are asked for their sessions, and what is reported from the answers.
struct DeviceSurveyTests {
    private static let interval = Moment.Span.seconds(10)
    private static let device = Samples.device

    private func seconds(_ count: Int64) -> Moment { Moment(nanoseconds: count * 1_000_000_000) }

    private func sighting(_ record: SessionRecord, quality: Double? = nil) -> Sighting {
        Sighting(
            address: BluetoothDestination(record.adapter, channel: record.channel).transportAddress,
            advertisement: record.advertisement, quality: quality)
    }

    /// A survey that knows one device with one session, which was asked at the beginning.
    private func surveyed() -> DeviceSurvey {
        var survey = DeviceSurvey(interval: Self.interval)
        _ = survey.seen(Self.device, .announced, signal: nil, now: seconds(0))
        #expect(survey.takeDue(now: seconds(0)) == Self.device)
        let changes = survey.answered(Self.device, [Samples.sessionRecord()], now: seconds(0))
        #expect(changes == [.found(sighting(Samples.sessionRecord()))])
        return survey
    }

    /// Lets the next question to the device, when it is due, fail; returns what is reported.
    private func fail(_ survey: inout DeviceSurvey) -> [SightingChange] {
        let now = survey.nextQuery
        #expect(survey.takeDue(now: now) == Self.device)
        return survey.failed(Self.device, now: now)
    }

    /// A program may set any interval.
    @Test func `An interval of centuries leads to no overflow`() {
        var survey = DeviceSurvey(interval: Moment.Span(nanoseconds: .max))
        _ = survey.seen(Self.device, .possible, signal: nil, now: seconds(1))
        #expect(survey.takeDue(now: seconds(1)) == Self.device)
        #expect(survey.answered(Self.device, [], now: seconds(1)) == [])
        #expect(survey.nextQuery == .never)
        for failure in 1...5 {
            survey.askSoon(Self.device, now: seconds(2))
            #expect(survey.takeDue(now: seconds(2)) == Self.device)
            #expect(survey.failed(Self.device, now: seconds(2)) == [])
            #expect(survey.nextQuery == (failure == 1 ? seconds(4) : .never))
        }
    }

    // MARK: Reports

    @Test func `A session is found then changed then lost`() {
        var survey = surveyed()
        #expect(survey.takeDue(now: seconds(9)) == nil)
        #expect(survey.takeDue(now: seconds(10)) == Self.device)
        #expect(survey.answered(Self.device, [Samples.sessionRecord()], now: seconds(10)) == [])
        let renamed = Samples.sessionRecord(name: "Lynx")
        #expect(survey.answered(Self.device, [renamed], now: seconds(20)) == [.changed(sighting(renamed))])
        #expect(
            survey.answered(Self.device, [], now: seconds(30)) == [.lost(sighting(renamed).address)])
        #expect(survey.counts == (asked: 1, found: 0))
    }

    @Test func `A device that does not answer once is not lost`() {
        var survey = surveyed()
        #expect(fail(&survey) == [])
        #expect(survey.nextQuery == seconds(12))
        _ = survey.takeDue(now: seconds(12))
        #expect(survey.answered(Self.device, [Samples.sessionRecord()], now: seconds(12)) == [])
        // From here on, failures are counted again from zero.
        #expect(fail(&survey) == [])
        #expect(fail(&survey) == [.lost(sighting(Samples.sessionRecord()).address)])
        #expect(fail(&survey) == [])
    }

    @Test func `A device with a pipe is not lost when it does not answer`() {
        var survey = surveyed()
        survey.pipeOpened(Self.device, now: seconds(1))
        for _ in 0..<5 { #expect(fail(&survey) == []) }
        survey.pipeEnded(Self.device, now: seconds(500))
        #expect(survey.nextQuery <= seconds(500))
        #expect(fail(&survey) == [.lost(sighting(Samples.sessionRecord()).address)])
    }

    @Test func `A device is not lost before its last pipe ends`() {
        var survey = surveyed()
        for _ in 0..<2 { survey.pipeOpened(Self.device, now: seconds(1)) }
        survey.pipeEnded(Self.device, now: seconds(1))
        for _ in 0..<3 { #expect(fail(&survey) == []) }
        // An extra end, for example of a pipe from before the device was known, has no effect.
        for _ in 0..<3 { survey.pipeEnded(Self.device, now: seconds(500)) }
        survey.pipeOpened(Self.device, now: seconds(500))
        #expect(fail(&survey) == [])
    }

    /// bluetoothd publishes each record on every adapter of the machine.
    @Test func `Records of other adapters are ignored`() {
        var survey = surveyed()
        let elsewhere = Samples.sessionRecord(1, channel: 4, adapter: Samples.other)
        #expect(survey.answered(Self.device, [Samples.sessionRecord(), elsewhere], now: seconds(10)) == [])
    }

    @Test func `A session does not find itself`() {
        var survey = DeviceSurvey(interval: Self.interval)
        survey.own = Samples.peers[0]
        _ = survey.seen(Self.device, .announced, signal: nil, now: seconds(0))
        let other = Samples.sessionRecord(1, channel: 4)
        #expect(
            survey.answered(Self.device, [Samples.sessionRecord(), other], now: seconds(0)) == [
                .found(sighting(other))
            ])
    }

    @Test func `A session that changes its channel has one route`() {
        var survey = surveyed()
        let moved = Samples.sessionRecord(channel: 9, handle: 0x1_0006)
        let address = sighting(Samples.sessionRecord()).address
        #expect(
            survey.answered(Self.device, [moved], now: seconds(10)) == [
                .lost(address), .found(sighting(moved)),
            ])
    }

    /// For a moment the old record is there beside the new one. Their order says nothing.
    @Test(arguments: [false, true])
    func `The newer of two records of a session is used`(_ isReversed: Bool) {
        var survey = surveyed()
        let records = [
            Samples.sessionRecord(name: "old", channel: 3, handle: 7),
            Samples.sessionRecord(name: "new", channel: 4, handle: 8),
        ]
        let changes = survey.answered(
            Self.device, isReversed ? records.reversed() : records, now: seconds(10))
        #expect(changes == [.lost(sighting(records[0]).address), .found(sighting(records[1]))])
    }

    @Test func `Two sessions on one device are reported separately`() {
        var survey = surveyed()
        let records = [Samples.sessionRecord(), Samples.sessionRecord(1, channel: 4)]
        #expect(survey.answered(Self.device, records, now: seconds(10)) == [.found(sighting(records[1]))])
        #expect(survey.counts == (asked: 1, found: 2))
        // Of two sessions that claim the same channel, only one can be reached there.
        let claimed = Samples.sessionRecord(2, handle: 0x2_0000)
        #expect(
            survey.answered(Self.device, records + [claimed], now: seconds(20)) == [
                .changed(sighting(claimed))
            ])
    }

    @Test func `Only large changes of the signal are reported`() {
        var survey = surveyed()
        let record = Samples.sessionRecord()
        #expect(
            survey.seen(Self.device, .announced, signal: -65, now: seconds(1)) == [
                .changed(sighting(record, quality: 0.5))
            ])
        #expect(survey.seen(Self.device, .announced, signal: -62, now: seconds(1)) == [])
        #expect(survey.seen(Self.device, .announced, signal: nil, now: seconds(1)) == [])
        #expect(
            survey.seen(Self.device, .announced, signal: 20, now: seconds(1)) == [
                .changed(sighting(record, quality: 1))
            ])
        #expect(
            survey.seen(Self.device, .announced, signal: -128, now: seconds(1)) == [
                .changed(sighting(record, quality: 0))
            ])
    }

    @Test func `Nothing is found without an adapter`() {
        var survey = surveyed()
        let more = Samples.sessionRecord(1, channel: 4)
        _ = survey.answered(Self.device, [Samples.sessionRecord(), more], now: seconds(10))
        _ = survey.takeDue(now: seconds(20))
        #expect(
            survey.clear() == [
                .lost(sighting(Samples.sessionRecord()).address), .lost(sighting(more).address),
            ])
        #expect(survey.counts == (asked: 0, found: 0))
        #expect(survey.nextQuery == .never)
        // A question that was in progress when the device was removed no longer counts.
        #expect(survey.answered(Self.device, [more], now: seconds(20)) == [])
        #expect(survey.failed(Self.device, now: seconds(20)) == [])
        #expect(survey.clear() == [])
    }

    // MARK: When devices are asked

    @Test func `A new device is queried at once and only once at a time`() {
        var survey = DeviceSurvey(interval: Self.interval)
        #expect(survey.nextQuery == .never)
        _ = survey.seen(Self.device, .possible, signal: nil, now: seconds(5))
        #expect(survey.nextQuery == seconds(5))
        #expect(survey.takeDue(now: seconds(5)) == Self.device)
        #expect(survey.takeDue(now: seconds(100)) == nil)
        #expect(survey.nextQuery == .never)
        survey.askSoon(Self.device, now: seconds(6))
        #expect(survey.takeDue(now: seconds(100)) == nil)
    }

    @Test func `The device that waited longest is queried first`() {
        var survey = DeviceSurvey(interval: Self.interval)
        _ = survey.seen(Samples.other, .possible, signal: nil, now: seconds(1))
        _ = survey.seen(Self.device, .possible, signal: nil, now: seconds(2))
        #expect(survey.takeDue(now: seconds(3)) == Samples.other)
        #expect(survey.takeDue(now: seconds(3)) == Self.device)
    }

    @Test(
        arguments: [(DeviceSurvey.Likelihood.possible, 60), (.announced, 20)]
            as [(DeviceSurvey.Likelihood, Int64)])
    func `A device without sessions is queried less often`(
        _ likelihood: DeviceSurvey.Likelihood, _ pause: Int64
    ) {
        var survey = DeviceSurvey(interval: Self.interval)
        _ = survey.seen(Self.device, likelihood, signal: nil, now: seconds(0))
        _ = survey.takeDue(now: seconds(0))
        #expect(survey.answered(Self.device, [], now: seconds(0)) == [])
        #expect(survey.nextQuery == seconds(pause))
    }

    @Test func `A device that starts to advertise the service is queried at once`() {
        var survey = DeviceSurvey(interval: Self.interval)
        _ = survey.seen(Self.device, .possible, signal: nil, now: seconds(0))
        _ = survey.takeDue(now: seconds(0))
        _ = survey.answered(Self.device, [], now: seconds(0))
        _ = survey.seen(Self.device, .possible, signal: -50, now: seconds(3))
        #expect(survey.nextQuery == seconds(60))
        _ = survey.seen(Self.device, .announced, signal: -50, now: seconds(4))
        #expect(survey.nextQuery == seconds(4))
    }

    @Test func `Queries of an unanswering device back off`() {
        var survey = DeviceSurvey(interval: Self.interval)
        _ = survey.seen(Self.device, .announced, signal: nil, now: seconds(0))
        var pauses: [Int64] = []
        for _ in 0..<8 {
            let before = survey.nextQuery
            #expect(fail(&survey) == [])
            pauses.append((survey.nextQuery - before).nanoseconds / 1_000_000_000)
        }
        #expect(pauses == [2, 20, 40, 80, 160, 160, 160, 160])
    }

    @Test func `A short interval applies to retries too`() {
        var survey = DeviceSurvey(interval: .seconds(1))
        _ = survey.seen(Self.device, .announced, signal: nil, now: seconds(0))
        #expect(fail(&survey) == [])
        #expect(survey.nextQuery == seconds(1))
    }

    @Test func `A device that is seen again is queried soon`() {
        var survey = surveyed()
        for _ in 0..<6 { _ = fail(&survey) }
        let now = survey.nextQuery + .seconds(-100)
        _ = survey.seen(Self.device, .announced, signal: nil, now: now)
        #expect(survey.nextQuery == now + .seconds(100))
        _ = survey.seen(Self.device, .announced, signal: -60, now: now)
        #expect(survey.nextQuery == now + .seconds(2))
    }

    @Test func `A removed device is queried once more before it is lost`() {
        var survey = surveyed()
        survey.gone(Self.device, now: seconds(3))
        #expect(survey.takeDue(now: seconds(3)) == Self.device)
        #expect(
            survey.answered(Self.device, [], now: seconds(3)) == [
                .lost(sighting(Samples.sessionRecord()).address)
            ])
        #expect(survey.counts == (asked: 0, found: 0))
        // It comes back as a new device.
        _ = survey.seen(Self.device, .announced, signal: nil, now: seconds(4))
        #expect(survey.takeDue(now: seconds(4)) == Self.device)
    }

    @Test func `A removed device that answers is not lost`() {
        var survey = surveyed()
        survey.gone(Self.device, now: seconds(3))
        _ = survey.takeDue(now: seconds(3))
        #expect(survey.answered(Self.device, [Samples.sessionRecord()], now: seconds(3)) == [])
        #expect(survey.counts == (asked: 1, found: 1))
        #expect(survey.nextQuery == seconds(13))
    }

    @Test func `A device that opens a pipe is queried`() {
        var survey = DeviceSurvey(interval: Self.interval)
        survey.pipeOpened(Self.device, now: seconds(1))
        #expect(survey.takeDue(now: seconds(1)) == Self.device)
        #expect(
            survey.answered(Self.device, [Samples.sessionRecord()], now: seconds(1)) == [
                .found(sighting(Samples.sessionRecord()))
            ])
        // Only the pipe made the device known.
        _ = survey.takeDue(now: seconds(11))
        _ = survey.answered(Self.device, [], now: seconds(11))
        #expect(survey.counts.asked == 1)
        survey.pipeEnded(Self.device, now: seconds(12))
        #expect(survey.counts.asked == 0)
    }

    @Test func `The number of known devices is bounded`() {
        var survey = DeviceSurvey(interval: Self.interval)
        for number in 0..<300 {
            _ = survey.seen(BluetoothAddress(number: UInt64(number)), .possible, signal: nil, now: seconds(0))
        }
        survey.pipeOpened(BluetoothAddress(number: 1_000), now: seconds(0))
        #expect(survey.counts.asked == DeviceSurvey.deviceLimit)
        // The first devices are known, and stay known.
        #expect(survey.takeDue(now: seconds(0)) == BluetoothAddress(number: 0))
        _ = survey.answered(BluetoothAddress(number: 0), [], now: seconds(0))
        survey.gone(BluetoothAddress(number: 0), now: seconds(1))
        _ = survey.seen(BluetoothAddress(number: 299), .possible, signal: nil, now: seconds(1))
        #expect(survey.counts.asked == DeviceSurvey.deviceLimit)
        survey.pipeEnded(BluetoothAddress(number: 1_000), now: seconds(2))
    }
}
