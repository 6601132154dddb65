extension SimulatedAPNs {
    /// Decides the handling of a request that is processed.
    mutating func decide(
        _ request: PushRequest, stream: Int, on connection: inout Connection, at moment: Moment,
        effects: inout [Effect]
    ) -> Decision {
        kept.requests += 1
        let underWay = connection.open.count + 1
        kept.mostStreams = max(kept.mostStreams, underWay)
        guard underWay <= connection.streamsMax else {
            kept.note(Self.excess(on: connection))
            effects.append(.reset(stream: stream, isRefused: true))
            return Decision(request: request, behaviour: .refuseStream)
        }
        let push = Push(
            token: terms.service == .fcm
                ? request.registrationToken ?? request.path
                : request.deviceToken.map(String.init) ?? request.channelID ?? "",
            id: request.idText.flatMap(PushID.init) ?? makeID(), request: request,
            activity: ActivityPush(request))
        let behaviour: PushBehaviour
        if terms.service != .apns {
            behaviour = decide(push, on: connection.number, moment)
        } else if let reason = refusal(of: request, on: &connection, moment) {
            behaviour = .refused(reason)
        } else if let answer = manage(request) {
            behaviour = .answer(answer)
        } else {
            noteRepeat(of: push)
            noteContent(of: push)
            behaviour = self.behaviour(to: push, on: connection.number)
        }
        apply(
            behaviour, to: push, stream: stream, on: &connection, at: moment, effects: &effects)
        return Decision(request: request, behaviour: behaviour)
    }

    /// Decides the handling of a request to another service than APNs.
    private mutating func decide(
        _ push: Push, on connection: Int, _ moment: Moment
    ) -> PushBehaviour {
        let wall = moment.wall / 1_000
        if terms.service == .fcm {
            // Random faults are those of pushes; the token endpoint has only scripted ones.
            if push.token == PushRequest.tokenPath,
                kept.devices[push.token]?.script.isEmpty == false
            {
                let scripted = behaviour(to: push, on: connection)
                if scripted != .take { return scripted }
            }
            if let answer = fcm.answer(to: push.request, wall: wall) {
                if let fault = answer.fault { kept.note(.malformed(fault)) }
                kept.accessTokens = fcm.issued
                return .answer(answer.answer)
            }
            return behaviour(to: push, on: connection)
        }
        if let fault = webPush.fault(of: push.request, wall: wall) {
            if let text = fault.text { kept.note(.malformed(text)) }
            return .answer(PushAnswer(status: fault.status, reason: fault.text))
        }
        let behaviour = self.behaviour(to: push, on: connection)
        // Nothing is too long if there is nothing.
        let isExcused = push.request.bodyBytes == 0 && behaviour.answer?.status == 413
        return behaviour == .take || isExcused ? .answer(PushAnswer(status: 201)) : behaviour
    }

    private mutating func makeID() -> PushID {
        idsMade += 1
        let high = FaultDraw.mixed(terms.seed ^ FaultDraw.mixed(idsMade))
        return PushID(random: high, FaultDraw.mixed(high))
    }

    // MARK: Rules

    private mutating func refusal(
        of request: PushRequest, on connection: inout Connection, _ moment: Moment
    ) -> APNsReason? {
        let rules = terms.rules
        let ofFields = rules.refusalOfFields(request)
        if ofFields == nil, connection.certificateTopics == nil,
            let reason = refusal(of: request.authorization, on: &connection, moment)
        {
            return reason
        }
        var reason =
            ofFields
            ?? rules.refusalOfTopic(request, allowed: connection.certificateTopics)
            ?? rules.refusalOfPayload(request)
        // A channel without storage accepts no other expiration than 0.
        let isStored = request.expiration.map { $0 != "0" } ?? false
        if reason == nil, isStored, policy(of: request) == .noMessages {
            reason = .badExpirationDate
        }
        if let reason { kept.note(.badRequest(reason)) }
        return reason
    }

    /// Returns the reason why the provider token is rejected on this connection; `nil` if it is
    /// valid.
    private mutating func refusal(
        of authorization: String?, on connection: inout Connection, _ moment: Moment
    ) -> APNsReason? {
        guard let authorization else { return .missingProviderToken }
        let token: ProviderTokens.Token
        switch tokens.token(authorization, wall: moment.wall / 1_000) {
        case .success(let valid): token = valid
        case .failure(let refusal): return refusal.reason
        }
        if authorization == connection.authorization { return nil }
        if let keyID = connection.keyID {
            guard keyID == token.keyID else { return .unrelatedKeyIDInToken }
            guard moment.now - connection.authorizedSince >= terms.providerTokenUseMin else {
                return .tooManyProviderTokenUpdates
            }
        }
        connection.keyID = token.keyID
        connection.authorization = authorization
        connection.authorizedSince = moment.now
        return nil
    }

    // MARK: The device token

    private mutating func noteRepeat(of push: Push) {
        let standing = answered[push.id]
        if standing.wasTold(200), !answered.lost.contains(standing.connection) {
            kept.note(.repeatedAfterSuccess)
        }
        if let reason = standing.refusal, !answered.lost.contains(standing.connection) {
            kept.note(.repeatedAfter(reason))
        }
    }

    private mutating func noteContent(of push: Push) {
        guard let activity = push.activity else { return }
        for key in activity.faults(isBroadcast: push.request.deviceToken == nil) {
            kept.note(.badContent(key: key))
        }
        guard let device = kept.devices[push.token], let event = activity.event else { return }
        let first = device.pushes.first.flatMap { ActivityPush($0.request) }?.event ?? event
        if (first == .start) != (event == .start) { kept.note(.wrongActivityToken) }
        if event != .start, let newest = device.newest, activity.isHidden(by: newest) {
            kept.note(.outOfOrder)
        }
        if device.endedOn != 0, !answered.lost.contains(device.endedOn) { kept.note(.afterEnd) }
    }

    private mutating func behaviour(to push: Push, on connection: Int) -> PushBehaviour {
        let isMissing =
            terms.service == .apns && push.request.deviceToken == nil
            && policy(of: push.request) == nil
        let refusal = isMissing ? PushBehaviour.refused(.channelNotRegistered) : nil
        guard kept.devices.count < PushRecord.devicesMax || kept.devices[push.token] != nil else {
            return refusal ?? .take
        }
        let (behaviour, toldOn) = Self.next(
            of: &kept.devices[push.token, default: DeviceRecord()], push.token, draw,
            on: connection, refusal: refusal)
        if let toldOn, !answered.lost.contains(toldOn) { kept.note(.pushedToDead) }
        return behaviour
    }

    /// Returns the behavior of a device token or channel for the next push, and, if it is dead, the
    /// connection on which the client was informed of that.
    private static func next(
        of device: inout DeviceRecord, _ token: String, _ draw: FaultDraw, on connection: Int,
        refusal: PushBehaviour?
    ) -> (PushBehaviour, toldOn: Int?) {
        device.requests += 1
        let behaviour: PushBehaviour
        if let refusal {
            behaviour = refusal
        } else if let scripted = device.script.first {
            if device.script.count > 1 { device.script.removeFirst() }
            behaviour = scripted
        } else if device.isDead, let last = device.last {
            behaviour = last
        } else {
            behaviour = draw.fault(token: token, request: device.requests) ?? .take
        }
        let endsToken = behaviour.answer?.endsToken ?? false
        let toldOn = device.isDead && endsToken ? device.deadOn : nil
        device.isDead = endsToken
        device.deadOn = connection
        device.last = behaviour
        return (behaviour, toldOn)
    }

    // MARK: What is done

    private mutating func apply(
        _ behaviour: PushBehaviour, to push: Push, stream: Int,
        on connection: inout Connection, at moment: Moment, effects: inout [Effect]
    ) {
        switch behaviour {
        case .answer(let answer):
            self.answer(
                answer, to: push, stream: stream, on: &connection, at: moment, effects: &effects)
        case .slow(let milliseconds, let answer):
            connection.open[stream] = Open(push: push, answer: answer)
            effects.append(.wait(stream: stream, milliseconds: max(0, milliseconds)))
        case .silence(let isTaken):
            if isTaken { take(push, on: connection, moment) }
            connection.open[stream] = Open(push: push, answer: nil)
        case .resetStream(let isTaken):
            if isTaken { take(push, on: connection, moment) }
            effects.append(.reset(stream: stream, isRefused: false))
        case .refuseStream:
            effects.append(.reset(stream: stream, isRefused: true))
        case .resetConnection(let isTaken):
            if isTaken { take(push, on: connection, moment) }
            answered.lost.insert(connection.number)
            effects.append(.cut)
        case .goAway(let reason, let includesThis):
            if includesThis {
                answer(
                    .taken, to: push, stream: stream, on: &connection, at: moment, effects: &effects
                )
            }
            // Streams opened by a client have odd numbers.
            let last = includesThis ? stream : max(0, stream - 2)
            connection.lastStream = min(connection.lastStream ?? last, last)
            effects.append(.goAway(lastStream: last, reason: reason))
        }
    }

    /// Sends the response to a request.
    mutating func answer(
        _ answer: PushAnswer, to push: Push, stream: Int, on connection: inout Connection,
        at moment: Moment, effects: inout [Effect]
    ) {
        if (200..<300).contains(answer.status) {
            take(push, on: connection, moment)
            // A channel may have another activity later.
            if push.activity?.event == .end, push.request.deviceToken != nil {
                kept.devices[push.token]?.endedOn = connection.number
            }
            connection.hasSucceeded = true
            if connection.streamsMax < terms.streamsMax {
                connection.streamsMax = terms.streamsMax
                effects.append(.settings(streamsMax: terms.streamsMax))
            }
        }
        kept.answers[PushAnswer(status: answer.status, reason: answer.reason), default: 0] += 1
        answered[push.id].note(answer, on: connection.number)
        effects.append(
            .answer(stream: stream, answer, id: push.id, idField: push.request.idField))
    }

    private mutating func take(_ push: Push, on connection: Connection, _ moment: Moment) {
        guard !push.request.isManagement else { return }
        kept.taken += 1
        if answered[push.id].isTaken { kept.duplicates += 1 }
        answered[push.id].isTaken = true
        // Stored requests are shown, so they must not contain a secret.
        var request = push.request
        request.authorization = nil
        kept.devices[push.token]?.take(
            DeviceRecord.Push(
                id: push.id, at: moment.wall, connection: connection.number, request: request),
            push.activity)
    }
}
