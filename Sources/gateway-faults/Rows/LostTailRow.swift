import Foundation
import GatewayTestSupport

/// The log loses its end, and those who could not know of it resume first (finding V3).
enum LostTailRow {
    static func run(_ context: RowContext) throws {
        let gateway = try GatewayProcess()
        let story = try LogLossStory(context, gateway)
        try story.change()
        try story.resume(story.campaign.clients)
        let copy = try story.copyStopped()
        try gateway.start()
        try story.change()
        try story.resume(story.far)
        gateway.kill()
        try story.replaceData(by: copy)
        story.campaign.expectLostLog()
        try gateway.start()
        // Those with the older cursors first; the newer ones prove the loss only later.
        story.listen(story.near)
        pause(seconds: context.seconds(0.5, 3))
        story.listen(story.far)
        pause(seconds: 1)
        try story.campaign.settle()
        context.figures += [("clients that resumed first", "\(story.near.count)")]
    }
}
