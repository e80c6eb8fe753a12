import FKMiddleware
import Foundation

/// The end of a response, and what follows: the next range, another request, or the end of the lane.
extension Transfer {
    /// Handles an event of the transport or of a request chain.
    func handle(_ event: EngineInbox.Event) {
        switch event {
        case .request(_, let number, let result, let notes):
            notes.forEach(run.record)
            if let lane = laneSet[number] { requestChainEnded(result, lane) }
        case .gate(_, let receiver):
            if let lane = laneSet.lane(of: receiver), !isEnding, !lane.isUnwanted { headArrived(lane, receiver) }
        case .judged(_, let receiver, let refusal, let notes):
            notes.forEach(run.record)
            if let lane = laneSet.lane(of: receiver) { headJudged(lane, receiver, refusal) }
        case .roomMade(_, let receiver, let result):
            if let lane = laneSet.lane(of: receiver) { roomMade(lane, receiver, result) }
        case .end(_, let receiver):
            guard let lane = laneSet.lane(of: receiver) else { return }
            if lane.headStage.isRunning {
                lane.headStage.responseHasEnded = true
            } else {
                responseEnded(lane, receiver)
            }
        case .trial(_, let number, let trial):
            if let lane = laneSet[number], lane.trial != nil { trialEnded(lane, trial) }
        case .pieces(_, let result): piecesCompared(result)
        }
    }

    func responseEnded(_ lane: Lane, _ receiver: RangeReceiver) {
        answered(lane, receiver.head)
        let operation = lane.request.operation
        lane.request.operation = nil
        lane.receiver = nil
        do throws(DownloadError) {
            if !receiver.askedEngine, !receiver.isRecorded, !receiver.isUncompared, lane.claim == nil,
                lane.mirror == nil
            {
                try adopt(receiver)
            }
        } catch {
            fail(error)
        }
        adopt(receiver, isIntact: lane.request.reopens == pieces.reopens)
        recordOrigin(of: receiver, lane)
        if let operation { lane.request.fetcher?.settle(operation, receiver, of: self) }
        if isEnding || lane.isUnwanted { return laneEnded(lane) }
        if let error = localError { return end(.fail(error), without: lane) }
        guard let outcome = receiver.outcome else { return }
        switch outcome {
        case .ended(.success(let summary)):
            bodyEnded(lane, receiver, summary)
        case .ended(.failure(let error)):
            record(refused: receiver.head)
            laneFailed(lane, error)
        case .complete(let total):
            entry.record.fill(total)
            entry.record.recordEnd(isVerified: true)
            laneEnded(lane)
        case .askAgain(let again):
            let reason =
                receiver.head.map { ResumeRules.reason($0, receiver.plan.ask, receiver.plan.known) }
                ?? "the server's answer to a range request was not usable"
            ask(again, reason, lane)
        case .seamDiffers:
            ask(.withoutRange, "the bytes before the seam are not the ones we hold: another file", lane)
        case .seamProvesNothing:
            ask(
                .withoutRange,
                "the bytes before the seam are all alike: they cannot tell the mirror's file from another",
                lane)
        }
    }

    private func bodyEnded(
        _ lane: Lane, _ receiver: RangeReceiver, _ summary: TransportSummary
    ) {
        let index = receiver.index
        guard entry.record.ranges.indices.contains(index) else {
            let error = DownloadError(.protocolViolation, "The server's answer had no usable head.")
            return laneFailed(lane, error)
        }
        guard !receiver.isCut else {
            let error = DownloadError(
                .incompleteBody, "The body ended before the end that its Content-Range announced.", isRetryable: true)
            return laneFailed(lane, error)
        }
        if let end = entry.record.ranges[index].end {
            guard receiver.position >= end || receiver.position > receiver.plan.ask.start else {
                let error = DownloadError(
                    .incompleteBody,
                    "The server sent none of the missing \((end - receiver.position).plural("byte")).",
                    isRetryable: true)
                return laneFailed(lane, error)
            }
        } else if !receiver.isPart {
            if needsProofOfEnd(summary) {
                recordAskedForEnd()
                run.appendHistory(
                    by: "end", "nothing showed the end of the body, which has no length: the rest is requested")
                return laneIsFree(lane)
            }
            closeRange(lane, receiver.position, isVerified: summary.lengthVerified)
        }
        entry.record.recordEnd(isVerified: summary.lengthVerified)
        if lane.request.reopens == pieces.reopens, receiver.position == entry.record.expected {
            adoptDigest(of: receiver)
        }
        if lane.repairs != nil {
            laneEnded(lane)
            return compareArrived()
        }
        laneIsFree(lane)
    }

    /// True if the rest of the file is to be requested, because the connection may have been lost before the end of the body.
    /// A request for the rest is answered with 416, the rest, or the length. It is sent once in an attempt. A digest or a
    /// known size decides without it.
    private func needsProofOfEnd(_ summary: TransportSummary) -> Bool {
        !summary.lengthVerified && !wasAskedForEnd && head?.httpVersion == "2" && entry.expectedDigest == nil
            && entry.record.task.optionsBox?.value.size == nil && !entry.hasPieceDigests
    }

    /// The body has ended at the end of the file, as far as anything tells.
    private func closeRange(_ lane: Lane, _ position: Int64, isVerified: Bool) {
        guard let index = lane.index, entry.record.ranges.indices.contains(index) else { return }
        entry.record.closeRange(index, at: position)
        entry.record.recordEnd(isVerified: isVerified)
        if !isVerified, wasAskedForEnd {
            run.appendHistory(by: "end", "no answer proved the end of the file: it may be cut")
        }
    }

    /// Accepts the stored bytes as the file after a server has refused to prove their end.
    ///
    /// - Returns: false if the request was another one, or may succeed later.
    func keepsUnprovenEnd(_ lane: Lane, _ error: DownloadError) -> Bool {
        guard wasAskedForEnd, error.code == .httpStatus, !error.isRetryable, lanes.count == 1,
            entry.record.expected == nil, let index = lane.index, entry.record.ranges.indices.contains(index),
            lane.request.ask.usesRange, entry.record.ranges[index].position == lane.request.ask.start
        else { return false }
        closeRange(lane, lane.request.ask.start, isVerified: false)
        return true
    }

    private func ask(
        _ again: ResumeRules.Again, _ reason: String, _ lane: Lane
    ) {
        let next = ResumeRules.ask(again: again, after: lane.request.ask)
        // A claim that the server does not serve costs nothing: the other lanes continue without it.
        if again != .withoutRange, lane.claim != nil {
            let refusal = DownloadError(.badRange, "The server does not serve ranges of this file: \(reason).")
            return laneFailed(lane, refusal)
        }
        // A mirror's answer says nothing about the file that the other lanes fetch.
        if again != .plainRange, lane.mirror != nil {
            return laneFailed(lane, DownloadError(.badRange, reason, isRetryable: true))
        }
        guard laneSet.mayAsk(again, with: lane) else {
            let error = DownloadError(
                .badRange, "The server does not answer range requests as RFC 9110 section 14 asks.", isRetryable: true)
            return laneFailed(lane, error)
        }
        run.appendHistory(by: "range", reason)
        guard again == .plainRange || lanes.count == 1 else {
            return end(.restart(next), without: lane)
        }
        lane.nextAsk = next
        ask(with: lane)
    }
}
