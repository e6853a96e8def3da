extension SessionDriver: TransportEvents {
    private func index(of transport: any Transport) -> Int? { transports.firstIndex { $0 === transport } }

    func routeFound(_ sighting: Sighting, by transport: any Transport) { routeSeen(sighting, by: transport) }

    func routeChanged(_ sighting: Sighting, by transport: any Transport) {
        routeSeen(sighting, by: transport)
    }

    private func routeSeen(_ sighting: Sighting, by transport: any Transport) {
        guard let index = index(of: transport), !isClosed else { return }
        inTurn { machine.routeSeen(sighting, transport: index, now: loop.now) }
    }

    func routeLost(_ address: TransportAddress, by transport: any Transport) {
        guard !isClosed else { return }
        inTurn { machine.routeLost(address) }
    }

    func addressKnown(_ address: TransportAddress, by transport: any Transport) {
        guard let index = index(of: transport), !isClosed else { return }
        inTurn { machine.addressKnown(address, transport: index, now: loop.now) }
    }

    func pipeOpened(_ pipe: any Pipe, dial: DialID?, by transport: any Transport) {
        guard let index = index(of: transport), !isClosed else { return pipe.close(.now) }
        inTurn {
            guard
                let link = machine.pipeOpened(
                    transport: index, dial: dial, at: pipe.remoteAddress,
                    guest: (CheckedTransport.pipe(inside: pipe) as? any GuestPipe)?.guest, now: loop.now)
            else { return pipe.close(.now) }
            let connection = PipeConnection(pipe: pipe, link: link, driver: self)
            connections[link.number] = connection
            observeBeginning(of: connection, scheme: transport.scheme)
            pipe.start(handler: connection)
        }
    }

    func dialFailed(_ dial: DialID, error: NighError, by transport: any Transport) {
        guard !isClosed else { return }
        inTurn { machine.dialFailed(dial, error: error, now: loop.now) }
    }

    func advertised(as name: DisplayName, by transport: any Transport) {
        guard !isClosed else { return }
        inTurn {
            machine.setAdvertisedName(name)
            machine.report(.advertised(scheme: transport.scheme, name: name.description))
        }
    }

    func advertisingFailed(_ error: NighError, by transport: any Transport) { failed(error) }

    func browsingFailed(_ error: NighError, by transport: any Transport) { failed(error) }

    private func failed(_ error: NighError) {
        guard !isClosed else { return }
        inTurn { machine.report(.problem(error)) }
    }

    func listeningChanged(_ addresses: [TransportAddress], by transport: any Transport) {
        guard !isClosed else { return }
        inTurn { machine.report(.listening(scheme: transport.scheme, addresses)) }
    }

    func transportChanged(_ condition: TransportCondition, by transport: any Transport) {
        guard let index = index(of: transport), !isClosed else { return }
        inTurn {
            switch condition {
            case .up:
                machine.report(.transportUp(transport.scheme))
                machine.dialKnownAddresses(transport: index, now: loop.now)
            case .down(let error):
                machine.report(.transportDown(transport.scheme, error))
                machine.routesLost(transport: index)
            }
        }
    }
}
