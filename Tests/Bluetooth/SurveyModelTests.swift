import NighBluetooth
import NighCore
import Testing

/// Tests that the reports of a survey are consistent for a session that knows nothing else, whatever happens in any
/// order.
struct SurveyModelTests {
    /// The beliefs of a session from the reports, together with the survey, the time and the devices being asked.
    private struct Model {
        var survey = DeviceSurvey(interval: .seconds(10))
        var now = Moment(nanoseconds: 0)
        var believed: [TransportAddress: Sighting] = [:]
        var asked: [BluetoothAddress] = []
        var found = 0

        mutating func apply(_ changes: [SightingChange]) {
            for change in changes {
                switch change {
                case .found(let sighting):
                    #expect(believed.updateValue(sighting, forKey: sighting.address) == nil, "found twice")
                    found += 1
                case .changed(let sighting):
                    let before = believed.updateValue(sighting, forKey: sighting.address)
                    #expect(before != nil && before != sighting, "changed without need")
                case .lost(let address):
                    #expect(believed.removeValue(forKey: address) != nil, "lost, and never found")
                }
            }
            #expect(survey.counts.found == believed.count)
            let peers = believed.values.map {
                "\($0.address.value.prefix(17)) \($0.advertisement.peer)"
            }
            #expect(Set(peers).count == peers.count, "one session of one device is there twice")
        }

        mutating func answer(_ device: BluetoothAddress, _ records: [SessionRecord]) {
            asked.removeAll { $0 == device }
            apply(survey.answered(device, records, now: now))
            // Of a device that was asked, exactly its own valid records are believed.
            let mine = believed.values.filter { $0.address.value.hasPrefix("\(device)") }
            for sighting in mine {
                #expect(
                    records.contains {
                        $0.adapter == device && $0.advertisement == sighting.advertisement
                            && sighting.address.value == "\(device)/\($0.channel)"
                    })
                #expect(sighting.advertisement.peer != survey.own)
            }
        }
    }

    private static let devices = (1...6).map { BluetoothAddress(number: UInt64($0)) }

    @Test(arguments: 0..<60 as Range<UInt64>)
    func `Reports are consistent`(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var model = Model()
        if seed % 3 == 0 { model.survey.own = Samples.peers[3] }
        for _ in 0..<600 {
            let device = Self.devices.randomElement(using: &random) ?? Self.devices[0]
            let now = model.now
            switch Int.random(in: 0..<20, using: &random) {
            case 0...3:
                let signal = Bool.random(using: &random) ? Int64.random(in: -110...10, using: &random) : nil
                let likelihood = Bool.random(using: &random) ? DeviceSurvey.Likelihood.announced : .possible
                model.apply(model.survey.seen(device, likelihood, signal: signal, now: now))
            case 4: model.survey.gone(device, now: now)
            case 5: model.survey.askSoon(device, now: now)
            case 6: model.survey.pipeOpened(device, now: now)
            case 7: model.survey.pipeEnded(device, now: now)
            case 8:
                if random.oneIn(6) {
                    model.apply(model.survey.clear())
                    #expect(model.believed.isEmpty)
                    model.asked = []
                }
            case 9...12:
                if let due = model.survey.takeDue(now: now) {
                    #expect(!model.asked.contains(due), "asked twice at a time")
                    model.asked.append(due)
                } else {
                    #expect(model.survey.nextQuery > now)
                }
            case 13...16:
                if let asked = model.asked.first { model.answer(asked, Self.records(of: asked, &random)) }
            case 17:
                if let asked = model.asked.first {
                    model.asked.removeFirst()
                    model.apply(model.survey.failed(asked, now: now))
                }
            default: model.now = now + .milliseconds(Int64.random(in: 0...30_000, using: &random))
            }
        }
        #expect(model.found > 0)
        // When nobody answers and no pipe is open, everything is lost in the end, and asking stops.
        for device in Self.devices {
            for _ in 0..<200 { model.survey.pipeEnded(device, now: model.now) }
            model.survey.gone(device, now: model.now)
        }
        for device in model.asked { model.apply(model.survey.failed(device, now: model.now)) }
        var asks = 0
        while model.survey.nextQuery != .never, asks < 100 {
            model.now = max(model.now, model.survey.nextQuery)
            guard let due = model.survey.takeDue(now: model.now) else { break }
            model.apply(model.survey.failed(due, now: model.now))
            asks += 1
        }
        #expect(model.believed.isEmpty)
        #expect(model.survey.counts == (asked: 0, found: 0))
    }

    /// Returns records that a device might answer: sessions that move, duplicates, records of other adapters, and this
    /// side's own session.
    private static func records(of device: BluetoothAddress, _ random: inout SeededGenerator)
        -> [SessionRecord]
    {
        (0..<Int.random(in: 0...4, using: &random)).map { _ in
            Samples.sessionRecord(
                Int.random(in: 0..<4, using: &random), name: random.oneIn(2) ? "Puma" : "Lynx",
                channel: UInt8.random(in: 1...3, using: &random),
                adapter: random.oneIn(5) ? Self.devices[0] : device,
                handle: UInt32.random(in: 1...50, using: &random))
        }
    }
}
